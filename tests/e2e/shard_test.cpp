// The data shard goes away for a while: peers keep what they have, wait, and go on when it is back.
#include <map>
#include <optional>

#include <doctest/doctest.h>

#include "actors/data/data_shard.hpp"
#include "actors/dht/dht_node.hpp"
#include "actors/training/peer.hpp"
#include "scenarios/schema/load.hpp"
#include "scenarios/stage/workloads.hpp"
#include "scenarios/stage/world.hpp"
#include "tests/e2e/support/swarm.hpp"

using namespace shoal;
using namespace shoal::e2e;
using namespace std::chrono_literals;

namespace {

/// Three peers and a shard, put together without a stage so that the shard can die.
struct small_world {
  std::unique_ptr<scenarios::prepared_workload> work;
  scenarios::world world;
  netem::machine_index shard_machine;
  std::vector<netem::machine_index> peer_machines;
  std::vector<caf::actor> nodes;
  std::shared_ptr<actors::sample_ledger> ledger = std::make_shared<actors::sample_ledger>(10s);
  std::shared_ptr<actors::state_pool> pool;
  std::map<actors::peer_id, std::uint64_t> epoch_of;
  std::uint64_t repeated = 0, misbehaved = 0, committed = 0;

  small_world()
      : work([] {
          auto loaded = scenarios::load_text(swarm{}.yaml(), "shard.yaml");
          return std::move(*scenarios::prepare_workload(*loaded.value));
        }()),
        world({.seed = 5, .detection_time = 2s, .compute_threads = 1}) {
    auto& net = world.net();
    auto region = net.add_region("here");
    net.set_path(region, region, {20ms, 5ms});
    shard_machine = net.add_machine("shard-0", region, data_rate{1e8}, data_rate{1e8});
    for (auto name : {"p-0", "p-1", "p-2"})
      peer_machines.push_back(net.add_machine(name, region, data_rate{1e6}, data_rate{4e6}));
    world.on_observation = [this](const actors::host& from, const actors::observation& seen) {
      if (auto* step = std::get_if<actors::stepped>(&seen)) epoch_of[from.id()] = step->epoch;
      if (std::holds_alternative<actors::samples_reported>(seen)) ++repeated;
      if (std::holds_alternative<actors::misbehaved>(seen)) ++misbehaved;
      if (auto* moved = std::get_if<actors::samples_moved>(&seen))
        if (moved->to == actors::sample_state::committed)
          for (const auto& range : moved->samples) committed += range.count;
    };
    start_shard();
    pool = std::make_shared<actors::state_pool>(work->work());
    actors::peer_config config;
    config.target_batch = 32;
    config.micro_batch = 4;
    config.prefetch_samples = 32;
    config.max_refresh = 2s;
    config.record_lifetime = 6s;
    config.device = {40, 0.1, 10ms};
    config.averaging.matchmaking_time = 2s;
    config.averaging.round_timeout = 20s;
    config.averaging.sender_timeout = 3s;
    for (auto machine : peer_machines)
      start_peer(world.boot(machine), config);
  }
  ~small_world() { nodes.clear(); }

  caf::actor start_node(actors::host& on) {
    actors::dht_config config;
    config.bootstraps = nodes;
    return nodes.emplace_back(world.spawn<actors::dht_node>(on, config));
  }
  void start_peer(actors::host& on, const actors::peer_config& config) {
    world.spawn<actors::peer>(on, config, pool, start_node(on));
  }

  void start_shard() {
    actors::data_shard_config config;
    config.lease_time = 10s;
    auto& host = world.boot(shard_machine);
    config.dht = start_node(host);
    config.record_lifetime = 20s;
    world.spawn<actors::data_shard>(host, config, work->source(), ledger);
  }
  void kill_shard(netem::kill_scope scope) { world.net().kill(world.net().host_on(shard_machine), scope); }
  void run(duration time) { world.clock().run(world.clock().now() + time); }
  std::uint64_t epoch() const {
    std::uint64_t out = 0;
    for (const auto& [peer, epoch] : epoch_of) out = std::max(out, epoch);
    return out;
  }
};

}  // namespace

TEST_CASE("a shard that is away for a while stops training and does not end it") {
  for (auto scope : {netem::kill_scope::process, netem::kill_scope::machine}) {
    small_world t;
    t.run(8s);
    auto before = t.epoch();
    CHECK(before > 2);
    t.kill_shard(scope);
    t.run(10s);
    auto starved = t.epoch();
    t.run(10s);
    CHECK(t.epoch() == starved);  // nobody invents samples
    t.start_shard();
    t.run(40s);
    INFO("epochs: " << before << " before, " << starved << " starved, " << t.epoch() << " at the end");
    CHECK(t.epoch() >= starved + 10);
    CHECK(t.misbehaved == 0);
    CHECK(t.world.net().bypassed() == 0);
  }
}
