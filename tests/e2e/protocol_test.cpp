// The protocols in virtual time. Members die at each point of a round, and leaders, donors and the
// shard die. The survivors always end and reach their epochs, and no invariant breaks.
#include "actors/averaging/observations.hpp"
#include "actors/probes.hpp"
#include "actors/training/observations.hpp"
#include "kernels/base/rng.hpp"
#include "tests/e2e/support/swarm.hpp"
#include "tests/support/skip.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <malloc.h>

#include <map>
#include <set>

using namespace shoal;
using namespace shoal::e2e;

namespace {

void check_fine(const swarm& what, const finished_run& run) {
  INFO(run.text(what.yaml()));
  CHECK(run.errors.empty());
}

finished_run run_fine(const swarm& what) {
  auto run = run_swarm(what);
  check_fine(what, run);
  return run;
}

/// Kills each member of a swarm of `peers` at each probe, in each of its first rounds.
void kill_at_each_probe(unsigned peers, const std::string& scope,
                        const std::vector<unsigned>& rounds = {1, 3},
                        const std::string& training = {}) {
  std::set<std::string> reasons;
  for (auto probe : actors::probes::all)
    for (unsigned who = 0; who < peers; ++who)
      for (unsigned nth : rounds) {
        swarm what;
        what.peers = peers;
        what.training = training;
        what.faults = {
            fmt::format("{{kill: {}, select: p-{}, on: {}, nth: {}}}", scope, who, probe, nth)};
        auto run = run_fine(what);
        for (const auto& [reason, count] : run.summary().rounds.by_reason) reasons.insert(reason);
      }
  CHECK(reasons.contains("sender_lost"));
}

} // namespace

TEST_CASE(
    "a swarm of three without trouble finishes with every round ok and the same bits everywhere") {
  swarm what;
  auto run = run_fine(what);
  CHECK(run.summary().rounds.ok == what.epochs);
  CHECK(run.summary().rounds.failed == 0);
  CHECK(*run.summary().loss.final < 0.5 * *run.summary().loss.first);
  std::set<std::string> states;
  for (const auto& [peer, state] : run.state_of) states.insert(state);
  CHECK(states.size() == 1);
}

TEST_CASE("with overlap the last gradients of a killed member are lost, and nothing else") {
  kill_at_each_probe(3, "process", {1, 3}, ", overlap: averaging");
  kill_at_each_probe(3, "machine", {2}, ", overlap: averaging");
  kill_at_each_probe(3, "process", {2}, ", overlap: update");
}

TEST_CASE("with overlap no sample is missed after a split, in which some complete a round that "
          "fails for others") {
  const std::string yaml = "stop_time: 1h\n"
                           "network: {default_delay: 40ms, default_jitter: 0ms}\n"
                           "devices:\n"
                           "  gpu: {samples_per_second: 10}\n"
                           "peers:\n"
                           "  p: {count: 6, up: 50Mbit, down: 100Mbit, device: gpu}\n"
                           "workload: {kind: timing, parameters: 4000000, sample_size: 64B}\n"
                           "training: {target_batch: 1000, micro_batch: 8, epochs: 30, overlap: "
                           "update, max_refresh: 5s, record_lifetime: 60s, "
                           "optimizer: {kind: sgd, learning_rate: 1}}\n"
                           "averaging: {matchmaking_time: 10s, round_timeout: 5500ms, "
                           "sender_timeout: 60s, chunk_size: 1MiB}\n" // a round takes as long
                           "record: {events: none}\n"
                           "faults:\n  - {throttle: both, select: p-0, at: 30s, every: 2min, "
                           "duration: 30s, factor: 0.5}\n";
  std::uint64_t splits = 0;
  for (int seed = 1; seed <= 8; ++seed) {
    const auto seeded = fmt::format("seed: {}\n", seed) + yaml;
    const auto run = run_yaml(seeded, 30);
    INFO(run.text(seeded));
    CHECK(run.errors.empty());
    splits += run.summary().rounds.split;
  }
  CHECK(splits > 0); // one in four or so
}

TEST_CASE("with overlap one peer alone trains") {
  for (const std::string mode : {"averaging", "update"}) {
    swarm what;
    what.peers = 1;
    what.training = ", overlap: " + mode;
    auto run = run_fine(what);
    CHECK(run.summary().rounds.ok == what.epochs - 1);
  }
}

TEST_CASE("with overlap who follows records of the dead before it had a sample does not wait for "
          "their round") {
  for (const std::string mode : {"averaging", "update"})
    for (int dies = 1500; dies < 4000; dies += 250) { // milliseconds; at first it is a step on
      swarm what;
      what.peers = 1;
      what.training = ", overlap: " + mode;
      // The host comes back cut off from the shard, and then hears at once of its former self, one
      // step on.
      what.faults = {
          fmt::format("{{restart: machine, downtime: 500ms, select: p-0, at: {}ms}}", dies),
          fmt::format("{{blackhole: both, duration: 4s, select: p-0, at: {}ms}}", dies)};
      const auto run = run_fine(what);
      CHECK(run.summary().epochs == what.epochs);
    }
}

TEST_CASE("with overlap a round goes on for which too few are left who gave something") {
  for (const std::string mode : {"averaging", "update"})
    for (const auto* probe : {"all_reduce.voted", "group.begun", "matchmaking.joined"})
      for (int nth = 2; nth < 5; ++nth) {
        swarm what;
        what.peers = 2;
        what.training = ", overlap: " + mode;
        what.averaging = ", min_group_size: 2";
        what.faults = {fmt::format(
            "{{restart: process, downtime: 500ms, select: p-1, on: {}, nth: {}}}", probe, nth)};
        run_fine(what);
      }
}

TEST_CASE("one peer alone trains") {
  swarm what;
  what.peers = 1;
  CHECK(run_fine(what).summary().rounds.ok == what.epochs);
}

TEST_CASE("two peers train together") {
  swarm what;
  what.peers = 2;
  auto run = run_fine(what);
  CHECK(run.summary().rounds.ok == what.epochs);
  CHECK(run.summary().bytes_sent.averaging > 0);
}

TEST_CASE("two peers survive the death of either process at each probe") {
  kill_at_each_probe(2, "process");
}
TEST_CASE("two peers survive the loss of either machine at each probe") {
  kill_at_each_probe(2, "machine");
}
TEST_CASE("three peers survive the death of any process at each probe") {
  kill_at_each_probe(3, "process");
}
TEST_CASE("three peers survive the loss of any machine at each probe") {
  kill_at_each_probe(3, "machine");
}
TEST_CASE("four peers survive the death of any process at each probe") {
  kill_at_each_probe(4, "process");
}
TEST_CASE("four peers survive the loss of any machine at each probe") {
  kill_at_each_probe(4, "machine");
}

TEST_CASE("five peers survive the death of any process at each probe") {
  kill_at_each_probe(5, "process", {2});
}

TEST_CASE("two of four peers may die in the same round") {
  for (auto first : actors::probes::all)
    for (auto second :
         {actors::probes::group_begun, actors::probes::half_sent, actors::probes::half_replied}) {
      swarm what;
      what.peers = 4;
      what.faults = {fmt::format("{{kill: process, select: p-0, on: {}, nth: 2}}", first),
                     fmt::format("{{kill: machine, select: p-2, on: {}, nth: 2}}", second)};
      run_fine(what);
    }
}

TEST_CASE("the leader may die at any moment of the first rounds") {
  for (int ms = 200; ms < 6000; ms += 130)
    for (const char* scope : {"process", "machine"}) {
      swarm what;
      what.faults = {fmt::format("{{kill: {}, select: p-0, at: {}ms}}", scope, ms)};
      run_fine(what);
    }
}

TEST_CASE("a follower may be restarted at any moment of the first rounds") {
  for (int ms = 200; ms < 5000; ms += 230)
    for (const char* downtime : {"1ms", "700ms", "4s"}) {
      swarm what;
      what.epochs = 10;
      what.faults = {
          fmt::format("{{restart: process, select: p-1, at: {}ms, downtime: {}}}", ms, downtime)};
      auto run = run_fine(what);
      CHECK(run.summary().peers.joined == 4);
    }
}

TEST_CASE("a restarted leader takes over again or follows, and nobody waits for its old self") {
  for (int ms = 200; ms < 5000; ms += 310) {
    swarm what;
    what.epochs = 10;
    what.faults = {fmt::format("{{restart: machine, select: p-0, at: {}ms, downtime: 100ms}}", ms)};
    run_fine(what);
  }
}

TEST_CASE("late joiners download the state, pay for its bytes and take part") {
  swarm what;
  what.epochs = 14;
  what.late =
      "  late: {count: 2, up: 1Mbit, down: 4Mbit, device: fast, start: 4s, start_spacing: 300ms}\n";
  auto run = run_fine(what);
  CHECK(run.adopted >= 2);
  CHECK(run.summary().bytes_sent.state >= 2 * 16'000);
  CHECK(run.summary().peers.joined == 5);
  // The peers end where the others do: at most one epoch behind when the last one was reached.
  for (const auto& [peer, epoch] : run.epoch_of) CHECK(epoch + 1 >= what.epochs);
}

TEST_CASE("a donor that dies in the middle of a download is replaced") {
  for (const char* scope : {"process", "machine"})
    for (unsigned nth : {1u, 2u, 3u}) {
      swarm what;
      what.epochs = 14;
      what.parameters = "40000";
      what.up = "8Mbit";
      what.down = "30Mbit";
      what.late = "  late: {count: 1, up: 1Mbit, down: 4Mbit, device: fast, start: 4s}\n";
      what.faults = {
          fmt::format("{{kill: {}, select: p-*, on: state.half_sent, nth: {}}}", scope, nth)};
      CHECK(run_fine(what).adopted >= 1);
    }
}

TEST_CASE("the only donor dies in the middle of a download and the joiner goes on alone") {
  swarm what;
  what.peers = 1;
  what.epochs = 8;
  what.parameters = "40000";
  what.late = "  late: {count: 1, up: 1Mbit, down: 1Mbit, device: fast, start: 2s}\n";
  what.faults = {"{kill: process, select: p-0, on: state.half_sent}"};
  run_fine(what);
}

TEST_CASE(
    "when everybody who had the state is gone, joiners do not wait for each other's copy of it") {
  // Each of the two reads old records of a higher epoch. Their reports while downloading prove
  // nothing.
  swarm what;
  what.peers = 2;
  what.faults = {"{restart: machine, select: p-0, at: 5s, downtime: 2500ms}",
                 "{restart: process, select: p-1, at: 5s, downtime: 2500ms}"};
  CHECK(run_fine(what).summary().virtual_seconds < 60);
}

TEST_CASE("a joiner whose donors are dead asks another, and not at the pace of the network") {
  swarm what;
  what.peers = 5;
  what.epochs = 12;
  what.late = "  late: {count: 1, up: 1Mbit, down: 4Mbit, device: fast, start: 4400ms}\n";
  what.faults = {"{kill: machine, select: 'p-[123]', at: 4300ms}"};
  std::uint64_t downloads = 0;
  scenarios::runner_options options;
  options.on_observation = [&](const actors::host&, const actors::observation& seen) {
    auto* phase = actors::get_if<actors::phase_changed>(&seen);
    if (phase != nullptr && phase->phase == actors::peer_phase::downloading) ++downloads;
  };
  auto run = run_swarm(what, std::move(options));
  check_fine(what, run);
  CHECK(run.adopted >= 1);
  CHECK(downloads <= 10);
}

TEST_CASE("a group size below the number of peers leaves some out of sync, who come back") {
  for (unsigned size : {2u, 3u}) {
    swarm what;
    what.peers = 5;
    what.epochs = 8;
    what.averaging = fmt::format(", group_size: {}", size);
    auto run = run_fine(what);
    CHECK(run.adopted > 0);
  }
}

TEST_CASE("a smallest group that is briefly not there makes the round fail and be run again") {
  swarm what;
  what.epochs = 8;
  what.averaging = ", min_group_size: 3";
  what.faults = {"{restart: process, select: p-2, at: 2s, downtime: 6s}"};
  run_fine(what);
}

TEST_CASE("a peer killed during matchmaking does not take the others along") {
  for (unsigned nth = 1; nth <= 6; ++nth)
    for (const char* scope : {"process", "machine"}) {
      swarm what;
      what.peers = 4;
      what.faults = {
          fmt::format("{{kill: {}, select: p-*, on: matchmaking.joined, nth: {}}}", scope, nth)};
      run_fine(what);
    }
}

TEST_CASE("in a swarm of more than twice the group size a full group goes ahead without half of "
          "the samples") {
  // 'quorum' counts samples that the group has no room for.
  swarm what;
  what.peers = 8;
  what.epochs = 8;
  what.averaging = ", group_size: 3";
  auto run = run_fine(what);
  CHECK(run.summary().virtual_seconds < 60);
}

TEST_CASE("unequal lines and devices still end each round with the same bits") {
  swarm what;
  what.epochs = 8;
  what.late = "  slow: {count: 2, up: 100kbit, down: 300kbit, device: slow}\n";
  auto yaml = what.yaml();
  auto at = yaml.find("peers:");
  yaml.insert(at, "  slow: {samples_per_second: 3, jitter: 30%, step_time: 100ms}\n");
  auto run = run_yaml(yaml, what.epochs);
  INFO(run.text(yaml));
  CHECK(run.errors.empty());
}

namespace {

/// A swarm of two whose third peer is gone for good, so that every round fails; memory after so
/// many failures.
void check_no_leaks(std::uint64_t failures) {
  swarm what;
  what.epochs = 100; // the swarm should not get there
  what.averaging = ", min_group_size: 3";
  what.faults = {"{kill: process, select: p-2, at: 5s}"};
  what.stop_time = fmt::format("{}min", 1 + failures / 8);
  std::uint64_t failed = 0;
  std::map<std::uint64_t, std::size_t> bytes;
  scenarios::runner_options options;
  options.on_observation = [&](const actors::host&, const actors::observation& seen) {
    auto* ended = actors::get_if<actors::round_ended>(&seen);
    if (ended != nullptr && ended->outcome == actors::outcome::failed &&
        (++failed == 10 || failed == failures))
      bytes[failed] = mallinfo2().uordblks;
  };
  auto yaml = what.yaml();
  // Rows of metrics and transfers are kept for the run directory.
  yaml.replace(yaml.find("events: none"), 12,
               "events: none, metrics_interval: 10000h, transfers: 0");
  const auto run = run_yaml(yaml, what.epochs, std::move(options));
  MESSAGE(failed << " aborted rounds; " << bytes[10] << " bytes after 10, " << bytes[failures]
                 << " after " << failures);
  REQUIRE(failed >= failures);
  // The coordinator and its queue look actors up by CAF's number of them: eight bytes for each that
  // ever was.
  const auto numbers = 8.0 * 1.5 * static_cast<double>(failures);
  CHECK(static_cast<double>(bytes[failures]) <= 1.01 * static_cast<double>(bytes[10]) + numbers);
  CHECK(rule(run.summary(), "no_leaks").violated == 0);
}

} // namespace

TEST_CASE("aborted rounds of a whole swarm leave no actor and no memory") {
  check_no_leaks(300);
}

TEST_CASE("ten thousand aborted rounds of a whole swarm leave no actor and no memory") {
  SHOAL_NIGHTLY();
  check_no_leaks(10'000);
}

TEST_CASE("random deaths, restarts and arrivals break nothing") {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    auto random = stream(seed, "e2e.chaos");
    swarm what;
    what.seed = seed;
    what.peers = 2 + static_cast<unsigned>(random.below(7));
    what.epochs = 12;
    if (random.below(3) == 0) what.averaging = fmt::format(", group_size: {}", 2 + random.below(6));
    if (random.below(3) == 0) what.averaging += fmt::format(", min_group_size: 2");
    if (what.averaging.find("group_size: 2") == std::string::npos && random.below(2) == 0)
      what.late = "  late: {count: 2, up: 2Mbit, down: 8Mbit, device: fast, start: 3s, "
                  "start_spacing: 2s}\n";
    auto faults = 1 + random.below(5);
    for (std::uint64_t i = 0; i < faults; ++i) {
      auto scope = random.below(2) == 0 ? "process" : "machine";
      auto who = 1 + random.below(what.peers - 1);
      bool back =
          random.below(2) == 0 || what.averaging.find("min_group_size") != std::string::npos;
      auto when = random.below(2) == 0
                      ? fmt::format("at: {}ms", 100 + random.below(9000))
                      : fmt::format("on: {}, nth: {}",
                                    actors::probes::all[random.below(actors::probes::all.size())],
                                    1 + random.below(8));
      what.faults.push_back(back ? fmt::format("{{restart: {}, select: p-{}, {}, downtime: {}ms}}",
                                               scope, who, when, 1 + random.below(5000))
                                 : fmt::format("{{kill: {}, select: p-{}, {}}}", scope, who, when));
    }
    run_fine(what);
  }
}
