// The data shard goes away for a while: peers keep what they have, wait, and go on when it is back.
// One of its replicas goes away: the next one takes over, and no sample is lost or used twice
// without being reported.
#include "actors/data/data_shard.hpp"
#include "actors/data/observations.hpp"
#include "actors/dht/dht_node.hpp"
#include "actors/training/observations.hpp"
#include "actors/training/peer.hpp"
#include "kernels/base/rng.hpp"
#include "scenarios/record/verify_data.hpp"
#include "scenarios/runner/world.hpp"
#include "scenarios/schema/load.hpp"
#include "scenarios/workloads/prepared.hpp"
#include "tests/e2e/support/swarm.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <optional>

using namespace shoal;
using namespace shoal::e2e;
using namespace std::chrono_literals;

namespace {

/// Three peers and a shard, put together without a runner so that the shard can die.
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

  static scenarios::world_options options() {
    scenarios::world_options out;
    out.seed = 5;
    out.detection_time = 2s;
    out.compute_threads = 1;
    return out;
  }

  small_world()
      : work([] {
          auto loaded = scenarios::load_text(swarm{}.yaml(), "shard.yaml");
          return std::move(*scenarios::prepare_workload(*loaded.value));
        }()),
        world(options()) {
    auto& net = world.net();
    auto region = net.add_region("here");
    net.set_path(region, region, {20ms, 5ms});
    shard_machine = net.add_machine("shard-0", region, data_rate{1e8}, data_rate{1e8});
    for (auto name : {"p-0", "p-1", "p-2"})
      peer_machines.push_back(net.add_machine(name, region, data_rate{1e6}, data_rate{4e6}));
    world.on_observation = [this](const actors::host& from, const actors::observation& seen) {
      if (auto* step = actors::get_if<actors::stepped>(&seen)) epoch_of[from.id()] = step->epoch;
      if (actors::holds_alternative<actors::samples_reported>(seen)) ++repeated;
      if (actors::holds_alternative<actors::misbehaved>(seen)) ++misbehaved;
      if (auto* moved = actors::get_if<actors::samples_moved>(&seen))
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
    for (auto machine : peer_machines) start_peer(world.boot(machine), config);
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
  void kill_shard(netem::kill_scope scope) {
    world.net().kill(world.net().host_on(shard_machine), scope);
  }
  void run(duration time) { world.clock().run(world.clock().now() + time); }
  std::uint64_t epoch() const {
    std::uint64_t out = 0;
    for (const auto& [peer, epoch] : epoch_of) out = std::max(out, epoch);
    return out;
  }
};

} // namespace

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
    CHECK(t.epoch() == starved); // nobody invents samples
    t.start_shard();
    t.run(40s);
    INFO("epochs: " << before << " before, " << starved << " starved, " << t.epoch()
                    << " at the end");
    CHECK(t.epoch() >= starved + 10);
    CHECK(t.misbehaved == 0);
    CHECK(t.world.net().bypassed() == 0);
  }
}

// -- replicas
// -----------------------------------------------------------------------------------------

namespace {

/// A swarm with several shards, run with its directory, and what was seen of the shards.
struct replicated_run {
  finished_run run;
  scenarios::data_report data;
  std::map<std::string, duration> first_lease_after; ///< by shard: its first lease after `since`
  std::uint64_t reported = 0;                        ///< samples
};

swarm with_replicas(unsigned replicas = 2) {
  swarm what;
  what.epochs = 20;
  what.data = fmt::format(", lease_time: 10s, replicas: {}", replicas);
  return what;
}

replicated_run run_replicas(const swarm& what, duration since = {},
                            const std::string& conduct = "honest") {
  replicated_run out;
  scenarios::runner_options options;
  const auto directory =
      std::filesystem::temp_directory_path() / fmt::format("shoal-shards-{}", ::getpid());
  options.out = directory.string();
  options.force = true;
  options.conduct = conduct;
  options.on_observation = [&](const actors::host& from, const actors::observation& seen) {
    if (const auto* said = actors::get_if<actors::samples_reported>(&seen))
      for (const auto& range : said->samples) out.reported += range.count;
    const auto* moved = actors::get_if<actors::samples_moved>(&seen);
    if (moved == nullptr || moved->to != actors::sample_state::leased) return;
    const duration now{from.utc_ns() - 1'700'000'000'000'000'000};
    if (now > since) out.first_lease_after.try_emplace(std::string{from.name()}, now);
  };
  out.run = run_swarm(what, std::move(options));
  out.data = scenarios::verify_data(directory.string());
  std::filesystem::remove_all(directory);
  return out;
}

std::string text(const replicated_run& of, const swarm& what) {
  std::string out = of.run.text(what.yaml());
  for (const auto& error : of.data.errors) out += error + "\n";
  return out;
}

} // namespace

TEST_CASE("a run with two shards and without faults trains as one with one") {
  double losses[2] = {}, seconds[2] = {};
  for (std::uint64_t seed = 1; seed <= 6; ++seed)
    for (unsigned replicas = 1; replicas <= 2; ++replicas) {
      auto what = with_replicas(replicas);
      what.seed = seed;
      const auto out = run_replicas(what);
      INFO(text(out, what));
      CHECK(out.run.errors.empty());
      CHECK(out.data.ok());
      CHECK(out.reported == 0);
      CHECK(out.data.indices < actors::index_block_size);
      losses[replicas - 1] += out.run.summary().loss.final.value();
      seconds[replicas - 1] += out.run.summary().virtual_seconds;
    }
  MESSAGE("time with two shards: " << seconds[1] / seconds[0] << " of that with one");
  CHECK(losses[1] == doctest::Approx(losses[0]).epsilon(0.02));
  // Peers begin a round at their next look at the others' progress, 200 ms after the last one. One
  // more host is one more receiver of writes, which moves all of them.
  CHECK(seconds[1] == doctest::Approx(seconds[0]).epsilon(0.15));
}

TEST_CASE("a shard killed at 20 random moments loses no sample") {
  auto draws = stream(7, "shard_test");
  double slowest_process = 0, slowest_machine = 0;
  for (unsigned i = 0; i < 20; ++i) {
    for (const std::string scope : {"process", "machine"}) {
      auto what = with_replicas();
      what.seed = 100 + i;
      const auto when = from_seconds(1 + 14 * draws.uniform());
      what.faults = {
          fmt::format("{{kill: {}, select: shard-0, at: {}ms}}", scope, when.count() / 1'000'000)};
      const auto out = run_replicas(what, when);
      INFO(text(out, what));
      CHECK(out.run.errors.empty());
      CHECK(out.data.ok());
      CHECK(out.data.doubtful_used == 0);
      REQUIRE(out.first_lease_after.contains("shard-1"));
      auto& slowest = scope == "process" ? slowest_process : slowest_machine;
      slowest = std::max(slowest, to_seconds(out.first_lease_after.at("shard-1") - when));
    }
  }
  MESSAGE("takeover after a crash: at most "
          << slowest_process << " s, after a lost machine: " << slowest_machine << " s");
  CHECK(slowest_process < 1);   // delays of 20 ms, until somebody has to ask
  CHECK(slowest_machine < 2.5); // detection_time is 2 s
}

TEST_CASE("a shard killed at random moments loses no sample while peers come and go") {
  auto draws = stream(8, "shard_test");
  for (unsigned i = 0; i < 20; ++i) {
    auto what = with_replicas();
    what.seed = 200 + i;
    what.peers = 5;
    what.faults = {fmt::format("{{kill: {}, select: shard-0, at: {}ms}}",
                               i % 2 == 0 ? "process" : "machine", 1000 + draws.below(14'000)),
                   "{restart: process, select: p-*, every: 3s, mode: one, downtime: 2s}"};
    const auto out = run_replicas(what);
    INFO(text(out, what));
    CHECK(out.run.errors.empty());
    CHECK(out.data.ok());
  }
}

TEST_CASE("shards that die one after the other and come back lose nothing that is not reported") {
  auto draws = stream(9, "shard_test");
  for (unsigned i = 0; i < 20; ++i) {
    auto what = with_replicas(2 + i % 2);
    what.seed = 300 + i;
    const auto first = 1000 + draws.below(9000), second = first + 100 + draws.below(8000);
    const auto fault = [&](const char* shard, std::uint64_t at) {
      return fmt::format("{{restart: {}, select: {}, at: {}ms, downtime: {}ms}}",
                         draws.below(2) == 0 ? "process" : "machine", shard, at,
                         500 + draws.below(5000));
    };
    what.faults = {fault("shard-0", first), fault("shard-1", second)};
    const auto out = run_replicas(what);
    INFO(text(out, what));
    CHECK(out.run.errors.empty());
    CHECK(out.data.ok());
  }
}

TEST_CASE(
    "shards that are cut off from each other, and each serve some of the peers, add up again") {
  for (const std::string lasts :
       {"500ms", "1500ms", "2500ms", "4s", "4700ms", "6s", "9s", "10900ms", "12s"})
    for (std::uint64_t seed = 400; seed < 405; ++seed) {
      auto what = with_replicas();
      what.seed = seed;
      what.more_network = ", regions: [west, east]";
      what.open = "region: west";
      what.late = "  e: {count: 2, region: east, up: 1Mbit, down: 40Mbit, device: fast}\n";
      what.data += ", replica_regions: [east]";
      what.faults = {fmt::format("{{partition: regions, at: 5s, duration: {}}}", lasts)};
      const auto out = run_replicas(what);
      INFO(text(out, what));
      CHECK(out.run.errors.empty());
      CHECK(out.data.ok());
    }
}

TEST_CASE("a shard that dies while the shards are cut off from each other, or when they have just "
          "met again, takes nothing along") {
  auto draws = stream(11, "shard_test");
  for (unsigned i = 0; i < 24; ++i)
    for (unsigned replicas = 2; replicas <= 3; ++replicas) {
      auto what = with_replicas(replicas);
      what.seed = 700 + i;
      what.more_network = ", regions: [west, east]";
      what.open = "region: west";
      what.late = "  e: {count: 2, region: east, up: 1Mbit, down: 40Mbit, device: fast}\n";
      what.data += ", replica_regions: [east]";
      const auto lasts = 500 + draws.below(11'500), at = 5000 + draws.below(lasts + 4000);
      const auto shard = draws.below(replicas), downtime = 500 + draws.below(4000);
      const char* scope = draws.below(2) == 0 ? "process" : "machine";
      what.faults = {
          fmt::format("{{partition: regions, at: 5s, duration: {}ms}}", lasts),
          i % 2 == 0 ? fmt::format("{{kill: {}, select: shard-{}, at: {}ms}}", scope, shard, at)
                     : fmt::format("{{restart: {}, select: shard-{}, at: {}ms, downtime: {}ms}}",
                                   scope, shard, at, downtime)};
      const auto out = run_replicas(what);
      INFO(text(out, what));
      CHECK(out.run.errors.empty());
      CHECK(out.data.ok());
    }
}

TEST_CASE("a shard that is paused or cut off, and comes back to find another one, adds up") {
  auto draws = stream(10, "shard_test");
  for (unsigned i = 0; i < 20; ++i) {
    auto what = with_replicas();
    what.seed = 500 + i;
    what.faults = {fmt::format("{{{}, select: shard-{}, at: {}ms, duration: {}ms}}",
                               i % 2 == 0 ? "pause: host" : "blackhole: both", i / 2 % 2,
                               1000 + draws.below(12'000), 500 + draws.below(8000))};
    const auto out = run_replicas(what);
    INFO(text(out, what));
    CHECK(out.run.errors.empty());
    CHECK(out.data.ok());
  }
}

TEST_CASE("the only shard comes back without its ledger, and says so") {
  for (const std::string scope : {"process", "machine"})
    for (std::uint64_t seed = 600; seed < 605; ++seed) {
      auto what = with_replicas(1);
      what.seed = seed;
      what.faults = {fmt::format("{{restart: {}, select: shard-0, at: 7s, downtime: 3s}}", scope)};
      const auto out = run_replicas(what);
      INFO(text(out, what));
      CHECK(out.run.errors.empty());
      CHECK(out.data.ok());
      CHECK(out.reported > 0);
      CHECK(out.data.doubtful_used > 0);
    }
}

TEST_CASE("with a shard that is killed two runs of one seed are the same") {
  auto what = with_replicas();
  what.faults = {"{restart: machine, select: shard-0, at: 6s, downtime: 3s}",
                 "{kill: process, select: shard-1, at: 12s}"};
  const auto a = run_replicas(what), b = run_replicas(what);
  CHECK(a.run.summary().event_hash.value() == b.run.summary().event_hash.value());
  CHECK(a.run.summary().epochs == what.epochs);
}

TEST_CASE("a backup that forgets commits is found out") {
  auto what = with_replicas();
  what.faults = {"{kill: process, select: shard-0, at: 8s}"};
  const auto out = run_replicas(what, {}, "forgotten_commit");
  CHECK_FALSE(out.data.ok());
  CHECK(rule(out.run.summary(), "samples_counted").violated > 0);
}
