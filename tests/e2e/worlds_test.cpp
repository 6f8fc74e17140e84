// The seam, seen from outside. The same scenario in virtual time and on the wall clock has the same
// outcome, and a round takes as long.
#include "scenarios/record/verify_data.hpp"
#include "tests/e2e/support/program.hpp"
#include "tests/e2e/support/swarm.hpp"
#include "tests/support/skip.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <ostream>
#include <thread>

using namespace shoal;
using namespace shoal::e2e;

namespace {

/// Epochs of about a quarter of a second, and timeouts to match, because emulation takes the time
/// it says. Queues are short: behind 50 ms of samples, peers would not meet within the 600 ms.
struct quick_swarm {
  unsigned peers = 3;
  unsigned epochs = 8;
  unsigned parameters = 4000;
  std::string up = "20Mbit";
  std::string late;
  std::string faults;
  std::string training, averaging; ///< further options, ', key: value'
  std::string tcp;                 ///< further options, ', key: value'
  /// Peers come to a round when their own steps are done, and no peer waits for all. On the wall
  /// clock the machine may delay a peer by half a second. The peer then finds a group that has
  /// closed, and meets the others in the next one.
  bool rounds_may_miss = false;

  std::string yaml(const std::string& world) const {
    return fmt::format(
        "world: {}\n"
        "stop_time: 20s\n"
        "network: {{default_delay: 10ms, default_jitter: 2ms, detection_time: 400ms, tcp: "
        "{{buffer: 1ms{}}}}}\n"
        "devices:\n"
        "  fast: {{samples_per_second: 150, jitter: 10%, step_time: 2ms}}\n"
        "peers:\n"
        "  p: {{count: {}, up: {}, down: 50Mbit, device: fast, start_spacing: 10ms}}\n{}"
        "data: {{prefetch_samples: 32}}\n"
        "workload: {{kind: quadratic, parameters: {}}}\n"
        "training: {{{}micro_batch: 4, epochs: {}, min_refresh: 50ms, max_refresh: 400ms, "
        "record_lifetime: 2s, optimizer: {{kind: sgd, learning_rate: 0.1}}{}}}\n"
        "averaging: {{matchmaking_time: 600ms, round_timeout: 6s, sender_timeout: 1s, chunk_size: "
        "2KiB{}}}\n"
        "record: {{events: rounds}}\n{}",
        world, tcp, peers, up, late, parameters,
        training.find("method: moshpit") == std::string::npos &&
                training.find("method: diloco") == std::string::npos
            ? "target_batch: 48, "
            : "",
        epochs, training, averaging, faults.empty() ? "" : "faults:\n  - " + faults + "\n");
  }
};

/// The outcome of a run, without the times.
struct fate {
  bool all_epochs = false, learnt = false;
  std::uint64_t violated = 0, refused = 0;
  std::uint64_t joined = 0, left = 0;
  bool troubled_rounds = false; ///< some were partial or failed
  bool adopted = false;         ///< somebody downloaded a state
  std::string data;             ///< the problems that verify-data finds
  bool operator==(const fate&) const = default;

  friend std::ostream& operator<<(std::ostream& out, const fate& f) {
    return out << fmt::format("all epochs {} learnt {} violated {} refused {} joined {} left {} "
                              "troubled {} adopted {} data '{}'",
                              f.all_epochs, f.learnt, f.violated, f.refused, f.joined, f.left,
                              f.troubled_rounds, f.adopted, f.data);
  }
};

fate fate_in(const std::string& world, const quick_swarm& what) {
  scratch_folder folder;
  scenarios::runner_options options;
  options.out = (folder / "out").string();
  auto run = run_yaml(what.yaml(world), what.epochs, std::move(options));
  const auto& summary = run.summary();
  INFO(run.text(what.yaml(world)));
  CHECK(run.errors.empty());
  CHECK(summary.event_hash.has_value() == (world == "sim"));
  CHECK(summary.distortion.has_value() == (world != "sim"));
  fate out;
  out.all_epochs = summary.epochs >= what.epochs;
  out.learnt = *summary.loss.final < 0.6 * *summary.loss.first;
  out.violated = summary.violations();
  out.refused = run.misbehaved;
  out.joined = summary.peers.joined;
  out.left = summary.peers.left;
  out.troubled_rounds = summary.rounds.partial + summary.rounds.failed > 0;
  out.adopted = run.adopted > 0;
  auto data = scenarios::verify_data((folder / "out").string());
  for (const auto& error : data.errors) out.data += error + "; ";
  return out;
}

/// In virtual time, on the wall clock, and over real connections.
fate same_in_all_worlds(const quick_swarm& what) {
  const auto simulated = fate_in("sim", what);
  if (what.rounds_may_miss) CHECK(!simulated.troubled_rounds);
  for (const std::string world : {"emulate", "loopback"}) {
    CAPTURE(world);
    auto real = fate_in(world, what);
    if (what.rounds_may_miss) real.troubled_rounds = false;
    // With nothing emulated between the hosts a round is over in milliseconds: whether a fault
    // finds one in its middle is chance.
    if (world == "loopback") {
      real.troubled_rounds = simulated.troubled_rounds;
      if (!simulated.adopted) real.adopted = false;
    }
    CHECK(real == simulated);
  }
  CHECK(simulated.all_epochs);
  CHECK(simulated.learnt);
  CHECK(simulated.data.empty());
  return simulated;
}

/// The lateness with which this machine wakes a thread that asked for a time. Emulation cannot be
/// more punctual.
class lateness {
public:
  lateness()
      : thread_([this] {
          while (!ended_) {
            auto due = std::chrono::steady_clock::now() + std::chrono::milliseconds(5);
            std::this_thread::sleep_until(due);
            seconds_ +=
                std::chrono::duration<double>(std::chrono::steady_clock::now() - due).count();
            ++wakes_;
          }
        }) {}
  /// Mean, in seconds. Call once.
  double end() {
    ended_ = true;
    thread_.join();
    return seconds_ / static_cast<double>(std::max<std::size_t>(wakes_, 1));
  }

private:
  std::atomic<bool> ended_{false};
  double seconds_ = 0;
  std::size_t wakes_ = 0;
  std::thread thread_;
};

double mean_round_seconds(const std::string& world, const std::string& more = "") {
  auto yaml =
      fmt::format("world: {}\n"
                  "stop_time: 60s\n"
                  "network: {{default_delay: 40ms, default_jitter: 5ms}}\n"
                  "devices:\n"
                  "  fast: {{samples_per_second: 40, jitter: 5%, step_time: 10ms}}\n"
                  "peers:\n"
                  "  p: {{count: 4, up: 5Mbit, down: 20Mbit, device: fast, start_spacing: 10ms}}\n"
                  "workload: {{kind: timing, parameters: 50000}}\n"
                  "training: {{target_batch: 32, micro_batch: 4, epochs: 6, max_refresh: 1s}}\n"
                  "averaging: {{matchmaking_time: 2s}}\n"
                  "record: {{events: none}}\n{}",
                  world, more);
  auto run = run_yaml(yaml, 6);
  INFO(run.text(yaml));
  CHECK(run.errors.empty());
  REQUIRE(run.summary().rounds.mean_seconds);
  return *run.summary().rounds.mean_seconds;
}

} // namespace

TEST_CASE("one peer alone trains alike in all worlds") {
  quick_swarm what;
  what.peers = 1;
  auto out = same_in_all_worlds(what);
  CHECK(!out.troubled_rounds);
}

TEST_CASE("two peers train alike in all worlds") {
  quick_swarm what;
  what.peers = 2;
  auto out = same_in_all_worlds(what);
  CHECK(!out.troubled_rounds);
  CHECK(out.left == 0);
}

TEST_CASE("peers with several connections for bulk train alike in all worlds") {
  quick_swarm what;
  what.tcp = ", connections: 3";
  auto out = same_in_all_worlds(what);
  CHECK(!out.troubled_rounds);
  CHECK(out.left == 0);
}

TEST_CASE("diloco: local steps and outer steps come to the same end in all worlds") {
  quick_swarm what;
  what.peers = 4;
  what.training = ", method: diloco, local_steps: 4, outer_learning_rate: 1, outer_momentum: 0";
  what.rounds_may_miss = true;
  auto out = same_in_all_worlds(what);
  CHECK(out.joined == 4);
  CHECK(out.left == 0);
}

TEST_CASE(
    "moshpit: local steps and averages in the lines of a grid come to the same end in all worlds") {
  quick_swarm what;
  what.peers = 4;
  what.training = ", method: moshpit, local_steps: 4";
  what.averaging = ", grid: 2x2";
  what.rounds_may_miss = true;
  auto out = same_in_all_worlds(what);
  CHECK(out.joined == 4);
  CHECK(out.left == 0);
}

TEST_CASE("a late joiner downloads the state in all worlds") {
  quick_swarm what;
  what.epochs = 10;
  what.late = "  late: {count: 1, up: 20Mbit, down: 50Mbit, device: fast, start: 800ms}\n";
  auto out = same_in_all_worlds(what);
  CHECK(out.joined == 4);
  CHECK(out.adopted);
}

TEST_CASE("a machine lost half-way through sending costs the same in all worlds") {
  quick_swarm what;
  what.peers = 4;
  what.epochs = 6;
  what.up = "2Mbit"; // a round takes a third of a second, so that its middle is not over at once
  what.parameters = 6000;
  what.faults = "{kill: machine, select: p-1, on: all_reduce.half_sent, nth: 2}";
  auto out = same_in_all_worlds(what);
  CHECK(out.troubled_rounds);
}

TEST_CASE("a leader that dies during a round is replaced in all worlds") {
  quick_swarm what;
  what.faults = "{kill: process, select: p-0, on: group.begun, nth: 3}";
  auto out = same_in_all_worlds(what);
  CHECK(out.joined == 3);
}

TEST_CASE("a restarted process comes back in all worlds") {
  quick_swarm what;
  what.epochs = 10;
  what.faults = "{restart: process, select: p-1, on: training.step, nth: 15, downtime: 300ms}";
  auto out = same_in_all_worlds(what);
  CHECK(out.joined == 4);
}

TEST_CASE("a round takes as long on the wall clock as in virtual time, within a tenth") {
  auto simulated = mean_round_seconds("sim");
  std::vector<double> emulated;
  lateness machine;
  for (int i = 0; i < 3; ++i) emulated.push_back(mean_round_seconds("emulate"));
  auto late = machine.end();
  std::sort(emulated.begin(), emulated.end());
  MESSAGE("mean round: sim " << simulated << " s, emulate " << emulated[0] << " " << emulated[1]
                             << " " << emulated[2] << " s; the machine wakes " << 1000 * late
                             << " ms late");
  auto agrees = std::abs(emulated[1] - simulated) <= 0.1 * simulated;
  // A round waits for a message or a timer some twenty times.
  if (!agrees && 20 * late > 0.05 * simulated)
    SHOAL_SKIP("this machine wakes threads too late for times to mean anything: something else "
               "keeps it busy");
  CHECK(agrees);
}

TEST_CASE("peers behind address translation train in both worlds, and learn there what they are") {
  quick_swarm what;
  what.peers = 2;
  what.late = "  cone: {count: 1, up: 20Mbit, down: 50Mbit, device: fast, nat: cone}\n"
              "  out: {count: 1, up: 20Mbit, down: 50Mbit, device: fast, nat: outbound_only}\n";
  for (const char* world : {"sim", "emulate"}) {
    auto run = run_yaml(what.yaml(world), what.epochs);
    INFO(run.text(what.yaml(world)));
    CHECK(run.errors.empty());
    REQUIRE(run.summary().reachability);
    CHECK(run.summary().reachability->wrong == 0);
    CHECK(run.summary().reachability->right >= 4);
    CHECK(run.summary().rounds.ok >= what.epochs);
  }
}

TEST_CASE("hosts that are paused, cut off, slowed down or wrong about the time come to the same "
          "end in both worlds") {
  // With the first two the swarm has to cope; the others are over before anybody gives up. Whether
  // one costs a round or a download all the same is a matter of milliseconds, and not compared.
  for (const char* fault :
       {"{pause: host, select: p-1, on: all_reduce.half_sent, nth: 2, duration: 2s}",
        "{blackhole: both, select: p-2, on: all_reduce.half_sent, nth: 2, duration: 2s}",
        "{pause: host, select: shard-0, at: 500ms, duration: 300ms}",
        "{partition: selected, select: p-0, at: 600ms, duration: 100ms}",
        "{netem: both, select: p-1, at: 300ms, delay: 20ms, jitter: 5ms, duplicate: 5%, duration: "
        "1s}",
        "{clock: bump, select: p-1, at: 300ms, ahead: 30s, duration: 1s}"}) {
    quick_swarm what;
    what.faults = fault;
    if (what.faults.find("half_sent") != std::string::npos) {
      what.peers = 4;
      what.up = "2Mbit"; // a round has a middle
      what.parameters = 6000;
    }
    INFO(fault);
    for (const char* world : {"sim", "emulate"}) {
      auto out = fate_in(world, what);
      out.troubled_rounds = out.adopted = false;
      fate expected;
      expected.all_epochs = expected.learnt = true;
      expected.joined = what.peers;
      CHECK(out == expected);
    }
  }
}

TEST_CASE("half the uplink slows a round down as much in both worlds") {
  // From the first second on, so that not one transfer has the whole rate.
  const std::string half = "faults:\n  - {throttle: up, select: \"p-*\", at: 0s, factor: 50%}\n";
  std::map<std::string, double> ratio;
  lateness machine;
  for (const char* world : {"sim", "emulate"})
    ratio[world] = mean_round_seconds(world, half) / mean_round_seconds(world);
  const auto late = machine.end();
  MESSAGE("slower by " << ratio["sim"] << " (sim), " << ratio["emulate"] << " (emulate)");
  CHECK(ratio["sim"] > 1.5); // matchmaking and delays are as long as before
  CHECK(ratio["sim"] < 2);
  const bool agrees = std::abs(ratio["emulate"] - ratio["sim"]) <= 0.1 * ratio["sim"];
  if (!agrees && late > 0.002)
    SHOAL_SKIP("this machine wakes threads too late for times to mean anything: something else "
               "keeps it busy");
  CHECK(agrees);
}

TEST_CASE(
    "a compute job that throws ends the run with an internal error that names it, in both worlds") {
  for (const char* world : {"sim", "emulate"})
    for (auto [bug, job] : {std::pair{"throwing_gradient", "gradient"},
                            std::pair{"throwing_step", "optimizer step"}}) {
      swarm what;
      what.more = fmt::format("world: {}\n", world);
      what.stop_time = "30s";
      scenarios::runner_options options;
      options.conduct = bug;
      std::string error;
      try {
        run_swarm(what, std::move(options));
      } catch (const std::runtime_error& e) {
        error = e.what();
      }
      INFO(world << ": " << error);
      CHECK(error.starts_with(fmt::format("internal error: compute job '{}' of p-", job)));
      CHECK(error.find(" threw: no more ") != std::string::npos);
    }
}
