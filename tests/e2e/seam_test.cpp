// The seam between protocols and world: messages that cross hosts without the network are counted.
// CMakeLists.txt checks that actors link no netem, and tests/tidy that they include none.
#include "actors/host_messages.hpp"
#include "actors/protocol_actor.hpp"
#include "scenarios/runner/world.hpp"

#include <caf/send.hpp>
#include <doctest/doctest.h>

using namespace shoal;

namespace {

/// Counts the ticks it gets.
class sink final : public actors::protocol_actor {
public:
  sink(caf::actor_config& config, actors::host& on, int& count)
      : protocol_actor(config, on), count_(count) {}
  caf::behavior make_behavior() override {
    return {[this](actors::tick&) { ++count_; }};
  }

private:
  int& count_;
};

/// Sends a tick to whom it is told.
class source final : public actors::protocol_actor {
public:
  source(caf::actor_config& config, actors::host& on, caf::actor to)
      : protocol_actor(config, on), to_(std::move(to)) {}
  caf::behavior make_behavior() override {
    send(to_, actors::tick{});
    return {[](actors::tick&) {}};
  }
  void on_exit() override {
    to_ = nullptr;
    protocol_actor::on_exit();
  }

private:
  caf::actor to_;
};

struct two_hosts {
  int received = 0;
  scenarios::world world{{}};
  netem::region_index region = world.net().add_region("here");
  netem::machine_index a = world.net().add_machine("a", region, data_rate{1e6}, data_rate{1e6});
  netem::machine_index b = world.net().add_machine("b", region, data_rate{1e6}, data_rate{1e6});
  actors::host& host_a = world.boot(a);
  actors::host& host_b = world.boot(b);
  caf::actor address, raw;

  two_hosts() {
    world.net().set_path(region, region, {std::chrono::milliseconds(10), {}});
    world.clock().as_host(world.index_of(host_a), [this] {
      raw = caf::actor_cast<caf::actor>(
          world.system().spawn<sink>(std::ref(host_a), std::ref(received)));
    });
    address = world.net().address_of(raw);
  }
  ~two_hosts() { address = raw = nullptr; }

  void run() { world.clock().run(world.clock().now() + std::chrono::seconds(1)); }
};

} // namespace

TEST_CASE("a message to an address goes through the network and is not counted as a bypass") {
  two_hosts t;
  t.world.spawn<source>(t.host_b, t.address);
  t.world.clock().run(std::chrono::milliseconds(9));
  CHECK(t.received == 0);
  t.run();
  CHECK(t.received == 1);
  CHECK(t.world.net().bypassed() == 0);
}

TEST_CASE("a raw handle on another host is counted exactly once") {
  two_hosts t;
  t.world.spawn<source>(t.host_b, t.raw);
  t.run();
  CHECK(t.received == 1);
  CHECK(t.world.net().bypassed() == 1);
}

TEST_CASE("a raw handle on the same host is no bypass") {
  two_hosts t;
  t.world.spawn<source>(t.host_a, t.raw);
  t.run();
  CHECK(t.received == 1);
  CHECK(t.world.net().bypassed() == 0);
}
