// Every fault on a small training swarm in virtual time. The peers that are present at the end have
// trained, no invariant breaks, nothing leaks, and no correct peer is taken for a misbehaving one.
#include "actors/failpoints.hpp"
#include "actors/probes.hpp"
#include "actors/training/observations.hpp"
#include "tests/e2e/support/swarm.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <map>
#include <set>

using namespace shoal;
using namespace shoal::e2e;

namespace {

finished_run run_fine(const swarm& what) {
  auto run = run_swarm(what);
  INFO(run.text(what.yaml()));
  CHECK(run.errors.empty());
  return run;
}

swarm five() {
  swarm what;
  what.peers = 5;
  what.epochs = 12;
  return what;
}

} // namespace

TEST_CASE("a swarm lives through each fault at each probe") {
  for (const char* how : {"pause: host, duration: 500ms", "pause: host, duration: 5s",
                          "blackhole: both, duration: 1s", "blackhole: both, duration: 8s",
                          "blackhole: from, duration: 4s", "blackhole: to, duration: 4s",
                          "throttle: both, factor: 10%, duration: 3s",
                          "netem: both, delay: 300ms, loss: 20%, duration: 4s",
                          "clock: bump, ahead: 30s, duration: 5s", "clock: bump, behind: 30s"})
    for (auto probe : actors::probes::all) {
      auto what = five();
      what.peers = 3;
      what.faults = {fmt::format("{{{}, select: p-1, on: {}, nth: 2}}", how, probe)};
      run_fine(what);
    }
}

TEST_CASE("a swarm lives through faults that come again and again") {
  for (std::uint64_t seed = 1; seed <= 4; ++seed)
    for (const char* how :
         {"pause: host, duration: 3s, mode: one",
          "blackhole: both, duration: 3s, mode: fixed-percent, value: 40%",
          "throttle: up, factor: 20%, duration: 2s, mode: random-max-percent, value: 100%",
          "netem: from, delay: 100ms, jitter: 50ms, distribution: pareto, bursts: {p: 2%, r: 30%}, "
          "duration: 2s, mode: one",
          "restart: process, downtime: 1s, mode: one", "swizzle-clog: both, duration: 4s"}) {
      auto what = five();
      what.seed = seed;
      what.faults = {
          fmt::format("{{{}, select: p-*, every: 4s, at: 1s, until: 30s, probability: 80%}}", how)};
      run_fine(what);
    }
}

TEST_CASE("a swarm lives with the failpoints of its protocols, and takes each of them only "
          "where a scenario says so") {
  std::map<std::string, unsigned> taken;
  for (std::uint64_t seed = 0; seed <= 8; ++seed) {
    auto what = five();
    what.seed = seed;
    what.late =
        "  late: {count: 2, up: 1Mbit, down: 40Mbit, device: fast, start: 4s, start_spacing: 3s}\n";
    if (seed > 0) what.more = "failpoints: 15%\n";
    scenarios::runner_options options;
    options.on_failpoint = [&](std::string_view branch) { ++taken[std::string(branch)]; };
    const auto run = run_swarm(what, std::move(options));
    INFO(run.text(what.yaml()));
    CHECK(run.errors.empty());
    if (seed == 0) CHECK(taken.empty());
  }
  for (const auto branch : actors::failpoint::all) {
    CAPTURE(branch);
    CHECK(taken[std::string(branch)] > 0);
  }
}

TEST_CASE("a swarm lives through each shape of partition") {
  for (std::uint64_t seed = 1; seed <= 3; ++seed)
    for (const char* how :
         {"minority-third", "halves", "majorities-ring", "selected, select: p-1, direction: from",
          "selected, select: p-1, direction: to", "selected, select: p-1"}) {
      auto what = five();
      what.seed = seed;
      what.epochs = 16;
      for (const char* lasts : {"1s", "5s"}) {
        what.faults = {fmt::format("{{partition: {}, at: 2s, duration: {}}}", how, lasts)};
        run_fine(what);
      }
    }
}

TEST_CASE("a peer that is cut off at any probe is back on the leading branch in the end") {
  std::uint64_t split = 0, rounds = 0;
  for (unsigned peers = 2; peers <= 5; ++peers)
    for (auto probe : actors::probes::all)
      for (unsigned who : {0u, peers - 1}) {
        auto what = five();
        what.peers = peers;
        // Noticed after 2 s; records of the others live longer than the cut lasts.
        what.faults = {fmt::format(
            "{{blackhole: both, select: p-{}, on: {}, nth: 2, duration: 4s}}", who, probe)};
        // The states from which peers step, by epoch: two branches may last one epoch, and no
        // longer. If two peers go on alone, neither branch has a majority. So they meet when
        // one of them looks while the other is ahead, which took three epochs at most.
        const std::size_t longest = peers == 2 ? 3 : 1;
        std::map<std::uint64_t, std::set<std::string>> stepped_from;
        scenarios::runner_options options;
        options.on_observation = [&](const actors::host&, const actors::observation& seen) {
          if (auto* step = actors::get_if<actors::stepped>(&seen))
            stepped_from[step->epoch].insert(step->before.hex());
        };
        const auto run = run_swarm(what, std::move(options));
        INFO(run.text(what.yaml()));
        CHECK(run.errors.empty());
        std::size_t epochs = 0;
        for (const auto& [epoch, states] : stepped_from) {
          epochs = states.size() > 1 ? epochs + 1 : 0;
          CHECK(epochs <= longest);
        }
        std::map<std::uint64_t, std::set<std::string>> ended;
        for (const auto& [peer, epoch] : run.epoch_of) ended[epoch].insert(run.state_of.at(peer));
        for (const auto& [epoch, states] : ended) CHECK(states.size() == 1);
        split += run.summary().rounds.split;
        rounds += run.summary().rounds.ok + run.summary().rounds.partial;
      }
  MESSAGE(rounds << " rounds completed, " << split << " split");
  CHECK(split > 0);
}

TEST_CASE("the shard's host can be paused and cut off") {
  for (const char* how :
       {"pause: host, duration: 1s", "pause: host, duration: 5s", "blackhole: both, duration: 6s",
        "throttle: both, rate: 50kbit, duration: 10s"}) {
    auto what = five();
    what.faults = {fmt::format("{{{}, select: shard-0, at: 2s}}", how)};
    run_fine(what);
  }
}

TEST_CASE("half the uplink makes rounds of sizes alone last twice as long") {
  swarm what;
  what.kind = "timing";
  what.parameters = "400000";
  what.up = "4Mbit";
  what.down = "100Mbit";
  what.more = "";
  const auto whole = *run_fine(what).summary().rounds.mean_seconds;
  what.faults = {"{throttle: up, select: p-*, at: 0s, factor: 50%}"};
  const auto half = *run_fine(what).summary().rounds.mean_seconds;
  what.faults = {"{throttle: up, select: p-*, at: 0s, rate: 2Mbit}"};
  const auto same = *run_fine(what).summary().rounds.mean_seconds;
  CAPTURE(whole);
  CHECK(half / whole == doctest::Approx(2).epsilon(0.1));
  CHECK(same == half);
}

TEST_CASE("a line that has half its rate over time makes rounds last twice as long") {
  swarm what;
  what.kind = "timing";
  what.parameters = "400000";
  what.up = "4Mbit";
  what.down = "100Mbit";
  const auto flow = [](swarm s, const std::string& over_time) {
    // The group's line in swarm::yaml() is a flow mapping.
    auto yaml = s.yaml();
    yaml.replace(yaml.find(", start_spacing"), 0, ", over_time: " + over_time);
    auto run = run_yaml(yaml, s.epochs);
    INFO(run.text(yaml));
    CHECK(run.errors.empty());
    return *run.summary().rounds.mean_seconds;
  };
  const auto whole = flow(what, "{steps: [{at: 1s, up: 4Mbit}]}");
  CHECK(flow(what, "{steps: [{at: 0s, up: 2Mbit}]}") / whole == doctest::Approx(2).epsilon(0.1));
  // Half of the time at half the rate, half at the whole one.
  CHECK(flow(what, "{steps: [{at: 0s, up: 2Mbit}, {at: 1s, up: 4Mbit}], repeat: 2s}") / whole ==
        doctest::Approx(4.0 / 3).epsilon(0.1));
  const swarm small;
  CHECK(flow(small, "{steps: [{at: 0s, delay: 100ms}]}") >
        flow(small, "{steps: [{at: 0s, delay: 0s}]}") + 0.5);
}

TEST_CASE("a peer that was paused for long finds itself behind and downloads the state") {
  auto what = five();
  what.epochs = 20;
  what.faults = {"{pause: host, select: p-2, at: 2s, duration: 8s}"};
  const auto run = run_fine(what);
  CHECK(run.adopted > 0);
  std::set<std::uint64_t> epochs;
  for (const auto& [peer, epoch] : run.epoch_of) epochs.insert(epoch);
  CHECK(epochs == std::set<std::uint64_t>{20});
}

TEST_CASE("records of a peer whose clock is behind expire early, so that it is not counted") {
  auto what = five();
  what.peers = 3;
  what.kind = "timing";
  what.training = ", min_refresh: 100ms";
  // The host's records live 6 s, so they have expired when they arrive.
  what.faults = {"{clock: bump, select: p-1, at: 0s, behind: 7s, duration: 20s}"};
  const auto behind = run_fine(what);
  what.faults = {"{clock: bump, select: p-1, at: 0s, behind: 1s, duration: 20s}"};
  const auto slightly = run_fine(what);
  CAPTURE(behind.text(""));
  CAPTURE(slightly.text(""));
  CHECK(behind.summary().virtual_seconds > slightly.summary().virtual_seconds);
}

TEST_CASE("the same faults give the same history, and another seed another one") {
  auto what = five();
  what.faults = {"{pause: host, select: p-*, every: 3s, mode: one, duration: 1s}",
                 "{netem: both, select: p-*, every: 5s, mode: random-max-percent, value: 80%, "
                 "delay: 50ms, duration: 3s, probability: 50%}"};
  const auto a = run_fine(what), b = run_fine(what);
  CHECK(a.summary().event_hash == b.summary().event_hash);
  CHECK(a.summary().faults_struck == b.summary().faults_struck);
  CHECK(a.summary().faults_struck > 0);
  what.seed = 2;
  CHECK(run_fine(what).summary().event_hash != a.summary().event_hash);
}
