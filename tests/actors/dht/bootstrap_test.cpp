#include "actors/dht/bootstrap.hpp"
#include "actors/dht/lost_nodes.hpp"
#include "tests/actors/support/mini_world.hpp"

#include <caf/actor_cast.hpp>
#include <doctest/doctest.h>

using namespace shoal;
using namespace shoal::actors;
using namespace shoal::actors::testing;
using namespace std::chrono_literals;

namespace {

class silent : public caf::event_based_actor {
public:
  silent(caf::actor_config& config, host&) : caf::event_based_actor(config) {}
  caf::behavior make_behavior() override {
    return {[](const tick&) {}};
  }
};

struct fixture {
  mini_world world;
  mini_host& here = world.add_host("here");
  caf::actor a = world.spawn<silent>(here), b = world.spawn<silent>(here),
             self = world.spawn<silent>(here);
  using list = std::vector<caf::actor>;
};

contact node(std::uint32_t n) {
  return {{0, 0, n}, {}};
}

} // namespace

TEST_CASE("DHT bootstrap: the first answer starts the look-up, and the end of the look-up "
          "completes the join") {
  fixture f;
  bootstrap entry({f.a, f.b}, {}, 10s, 0s);
  CHECK(entry.is_asking());
  entry.refresh(f.self);
  entry.begin_attempt();
  CHECK(entry.answered());
  CHECK_FALSE(entry.is_asking());
  CHECK_FALSE(entry.answered());
  CHECK_FALSE(entry.failed());
  CHECK_FALSE(entry.has_joined());
  CHECK(entry.join());
  CHECK(entry.has_joined());
  CHECK_FALSE(entry.join());
}

TEST_CASE("DHT bootstrap: an attempt fails with its last address, and each retry comes later than "
          "the one before") {
  fixture f;
  bootstrap entry({f.a, f.b}, {}, 10s, 5s);
  for (const auto delay : {1s, 2s, 3s, 4s, 5s, 5s}) {
    entry.begin_attempt();
    CHECK_FALSE(entry.failed());
    CHECK(entry.failed());
    CHECK(entry.retry_delay() == delay);
  }
  CHECK_FALSE(entry.has_timed_out(14s));
  CHECK(entry.has_timed_out(15s));
  entry.begin_attempt();
  // The introduced address is asked, too.
  entry.introduce(f.self, 32);
  CHECK_FALSE(entry.failed());
  CHECK_FALSE(entry.failed());
  CHECK(entry.failed());
}

TEST_CASE("DHT bootstrap: later attempts ask the nodes that are at the addresses by then") {
  fixture f;
  fixture::list there{f.b, nullptr, f.self};
  bootstrap entry(
      {f.a, f.self, nullptr}, [&] { return there; }, 10s, 0s);
  entry.refresh(f.self);
  CHECK(entry.addresses() == fixture::list{f.a});
  entry.begin_attempt();
  entry.refresh(f.self);
  CHECK(entry.addresses() == fixture::list{f.b});
}

TEST_CASE("DHT bootstrap: only the latest introduced addresses are kept, up to a limit") {
  fixture f;
  bootstrap entry({f.a, f.b}, {}, 10s, 0s);
  entry.introduce(f.a, 2);
  CHECK(entry.addresses() == fixture::list{f.b, f.a});
  entry.introduce(f.self, 2);
  CHECK(entry.addresses() == fixture::list{f.a, f.self});
}

TEST_CASE("DHT bootstrap: silent addresses are asked in turn until they answer or die") {
  fixture f;
  bootstrap entry({f.a, f.b}, {}, 10s, 0s);
  CHECK(entry.next_unheard() == f.b);
  CHECK(entry.next_unheard() == f.a);
  CHECK(entry.heard(f.a));
  CHECK_FALSE(entry.heard(f.a));
  CHECK(entry.next_unheard() == f.b);
  CHECK(entry.next_unheard() == f.b);
  entry.died(caf::actor_cast<caf::actor_addr>(f.b));
  CHECK_FALSE(entry.next_unheard());
}

TEST_CASE("DHT lost nodes: a dead node is named until a message of it arrives, and the oldest of "
          "too many is forgotten") {
  lost_nodes lost;
  lost.remember(node(1));
  lost.died(node(1));
  CHECK(lost.is_dead(node(1)));
  CHECK(lost.silent().empty());
  lost.heard(node(1));
  CHECK_FALSE(lost.is_dead(node(1)));
  for (std::uint32_t n = 2; n < 3 + lost_nodes::most_dead; ++n) lost.died(node(n));
  CHECK_FALSE(lost.is_dead(node(2)));
  CHECK(lost.is_dead(node(3)));
}

TEST_CASE(
    "DHT lost nodes: a silent node is remembered once, and the oldest of too many is forgotten") {
  lost_nodes lost;
  for (const auto n : {1u, 2u, 1u}) lost.remember(node(n));
  REQUIRE(lost.silent().size() == 2);
  CHECK(lost.silent().front().id == node(2).id);
  for (std::uint32_t n = 3; n < 3 + lost_nodes::most_silent; ++n) lost.remember(node(n));
  CHECK(lost.silent().size() == lost_nodes::most_silent);
  CHECK(lost.silent().front().id == node(3).id);
}

TEST_CASE(
    "DHT lost nodes: a silent node has one planned probe, and a node that came back needs none") {
  lost_nodes lost;
  CHECK_FALSE(lost.needs_probe(node(1)));
  lost.remember(node(1));
  CHECK(lost.needs_probe(node(1)));
  lost.plan_probe(7, node(1));
  CHECK_FALSE(lost.needs_probe(node(1)));
  CHECK_FALSE(lost.take_probe(8));
  const auto due = lost.take_probe(7);
  REQUIRE(due);
  CHECK(due->id == node(1).id);
  CHECK_FALSE(lost.take_probe(7));
  lost.plan_probe(9, node(1));
  lost.forget(node(1).id);
  CHECK_FALSE(lost.take_probe(9));
}
