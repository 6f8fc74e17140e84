// Coming late: at any moment, over slow lines, while donors die, in crowds; and what is left when
// nearly everybody goes.
#include "actors/averaging/observations.hpp"
#include "actors/training/observations.hpp"
#include "kernels/base/rng.hpp"
#include "tests/e2e/support/swarm.hpp"
#include "tests/support/skip.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

using namespace shoal;
using namespace shoal::e2e;

namespace {

/// Sixteen peers of 4 MB to average and 12 MB of state. For a while an epoch lasts about as long as
/// a download at `down`.
struct joining {
  std::string kind = "timing";
  std::string parameters = "1000000";
  std::string up = "20Mbit", down = "100Mbit";
  std::string late_up = "20Mbit", late_down = "20Mbit";
  double late_start = 40;
  unsigned late_count = 1;
  unsigned peers = 16;
  unsigned epochs = 12;
  std::uint64_t target_batch = 6400;
  std::uint64_t seed = 1;
  std::string chunk = "64KiB";
  std::string training;
  std::string stop_time = "1h";
  std::string network;
  std::string more_peers; // lines
  std::vector<std::string> faults;

  std::string yaml() const {
    auto out =
        fmt::format("seed: {}\n"
                    "stop_time: {}\n"
                    "network: {{default_delay: 40ms, default_jitter: 10ms, detection_time: 3s{}}}\n"
                    "devices:\n"
                    "  fast: {{samples_per_second: 40, jitter: 10%, step_time: 10ms}}\n"
                    "peers:\n"
                    "  p: {{count: {}, up: {}, down: {}, device: fast, start_spacing: 10ms}}\n",
                    seed, stop_time, network, peers, up, down);
    out += more_peers;
    if (late_count > 0)
      out += fmt::format("  late: {{count: {}, up: {}, down: {}, device: fast, start: {:.3f}s, "
                         "start_spacing: 10ms}}\n",
                         late_count, late_up, late_down, late_start);
    out += fmt::format("data: {{prefetch_samples: 64}}\n"
                       "workload: {{kind: {}, parameters: {}{}}}\n"
                       "training: {{target_batch: {}, micro_batch: 8, epochs: {}, max_refresh: 2s, "
                       "record_lifetime: 6s, "
                       "optimizer: {{kind: adamw, learning_rate: 0.01}}{}}}\n"
                       "averaging: {{matchmaking_time: 4s, round_timeout: 120s, sender_timeout: "
                       "10s, chunk_size: {}}}\n"
                       "record: {{events: none}}\n",
                       kind, parameters, kind == "timing" ? ", sample_size: 64B" : "", target_batch,
                       epochs, training, chunk);
    if (!faults.empty()) out += "faults:\n";
    for (const auto& fault : faults) out += "  - " + fault + "\n";
    return out;
  }
};

/// The history of the host `name`.
struct newcomer {
  std::optional<std::uint64_t> swarm_at_boot; // leading epoch when it knew what it has to download
  std::optional<std::uint64_t> contributed;   // epoch of the first round that used something of it
  std::uint64_t states = 0, steps = 0;        // downloaded
  std::uint64_t bytes = 0, rejected = 0;
  std::uint64_t largest_donors = 0;
  std::map<std::string, std::uint64_t> ended; // downloads, by reason

  std::string text() const {
    return fmt::format("swarm {}, contributed {}, states {}, steps {}, {} bytes, donors {}",
                       swarm_at_boot.value_or(-1), contributed.value_or(-1), states, steps, bytes,
                       largest_donors);
  }
};

struct watched_run {
  finished_run run;
  std::map<std::string, newcomer> of;
};

watched_run watch(const joining& what, scenarios::runner_options options = {}) {
  watched_run out;
  std::uint64_t lead = 0;
  std::map<std::string, std::pair<actors::group_id, std::uint64_t>>
      last; // contribution: group, weight
  options.on_observation = [&](const actors::host& from, const actors::observation& seen) {
    if (auto* step = actors::get_if<actors::stepped>(&seen)) lead = std::max(lead, step->epoch);
    auto& one = out.of[std::string(from.name())];
    if (auto* phase = actors::get_if<actors::phase_changed>(&seen)) {
      if (phase->phase == actors::peer_phase::downloading && !one.swarm_at_boot)
        one.swarm_at_boot = lead;
    } else if (auto* download = actors::get_if<actors::download_ended>(&seen)) {
      ++one.ended[std::string(actors::to_string(download->reason))];
      one.bytes += download->bytes;
      one.rejected += download->rejected;
      one.largest_donors = std::max<std::uint64_t>(one.largest_donors, download->donors);
      if (download->reason == actors::reason::none) ++(download->step ? one.steps : one.states);
    } else if (auto* given = actors::get_if<actors::contributed>(&seen)) {
      last[std::string(from.name())] = {given->group, given->weight};
    } else if (auto* ended = actors::get_if<actors::round_ended>(&seen)) {
      const auto& [group, weight] = last[std::string(from.name())];
      const bool good =
          ended->outcome == actors::outcome::ok || ended->outcome == actors::outcome::partial;
      if (good && group == ended->group && weight > 0 && !one.contributed)
        one.contributed = ended->epoch;
    }
  };
  out.run = run_yaml(what.yaml(), what.epochs, std::move(options));
  INFO(out.run.text(what.yaml()));
  CHECK(out.run.errors.empty());
  return out;
}

/// Each start of a host, and the seconds until its actors said their first word.
std::map<std::string, std::vector<double>> seconds_until_first_word(const std::string& late,
                                                                    const std::string& fault) {
  swarm what;
  what.late = late;
  if (!fault.empty()) what.faults = {fault};
  std::map<std::string, std::vector<double>> out;
  std::optional<std::int64_t> begun;
  scenarios::runner_options options;
  options.on_observation = [&](const actors::host& from, const actors::observation& seen) {
    if (!begun) begun = from.utc_ns();
    const auto* phase = actors::get_if<actors::phase_changed>(&seen);
    if (phase && phase->phase == actors::peer_phase::joining && phase->epoch == 0)
      out[std::string(from.name())].push_back(static_cast<double>(from.utc_ns() - *begun) / 1e9);
  };
  const auto run = run_swarm(what, std::move(options));
  INFO(run.text(what.yaml()));
  CHECK(run.errors.empty());
  return out;
}

/// Random moments from one seed: fractions of the time between the second and the sixth epoch.
std::vector<double> moments(std::size_t count, double from, double to) {
  auto random = stream(7, "moments");
  std::vector<double> out;
  for (std::size_t i = 0; i < count; ++i) out.push_back(from + (to - from) * random.uniform());
  return out;
}

} // namespace

TEST_CASE("a peer that joins sixteen others at any moment contributes within three epochs") {
  // The download lasts about half of an epoch: longer than anybody waits for it.
  std::map<std::uint64_t, unsigned> after;
  for (const auto start : moments(tries(12, 50), 50, 95)) {
    joining what;
    what.late_start = start;
    what.epochs = static_cast<unsigned>(start / 12) + 5; // epochs of 13 s each
    const auto run = watch(what);
    const auto& late = run.of.at("late-0");
    INFO("start " << start << ": " << late.text());
    REQUIRE(late.swarm_at_boot);
    REQUIRE(late.contributed);
    // A joiner takes the newest certified state, which is one step behind, and repeats the step. At
    // the end of its first round three epochs are over at most.
    CHECK(*late.contributed <= *late.swarm_at_boot + 2);
    CHECK(late.states == 1);
    ++after[*late.contributed - *late.swarm_at_boot];
  }
  for (const auto& [epochs, joiners] : after)
    MESSAGE("contributed to the round of epoch +" << epochs << ": " << joiners);
}

TEST_CASE("with overlap who joins at any moment computes for the swarm within two epochs, and is "
          "in the next round") {
  // Samples that the peer computes in one epoch are averaged in the next.
  std::map<std::uint64_t, unsigned> after;
  for (const auto start : moments(tries(6, 12), 50, 75)) {
    joining what;
    what.late_start = start;
    what.training = ", overlap: averaging";
    what.epochs = static_cast<unsigned>(start / 10) + 7;
    const auto run = watch(what);
    const auto& late = run.of.at("late-0");
    INFO("start " << start << ": " << late.text());
    REQUIRE(late.swarm_at_boot);
    REQUIRE(late.contributed);
    CHECK(*late.contributed <= *late.swarm_at_boot + 3);
    ++after[*late.contributed - *late.swarm_at_boot];
  }
  for (const auto& [epochs, joiners] : after)
    MESSAGE("contributed to the round of epoch +" << epochs << ": " << joiners);
}

TEST_CASE("with overlap who is left alone with a state, and without the round that led on from it, "
          "goes on") {
  for (const auto leaves :
       moments(tries(10, 20), 46,
               60)) { // the joiner has a state at 46.7 s, and is in its first round at 51.3 s
    joining what;
    what.peers = 2;
    what.target_batch = 800;
    what.late_start = 40;
    what.training = ", overlap: averaging";
    what.faults = {fmt::format("{{kill: machine, select: p-0, at: {:.3f}s}}", leaves),
                   fmt::format("{{kill: process, select: p-1, at: {:.3f}s}}", leaves)};
    const auto run = watch(what);
    const auto& late = run.of.at("late-0");
    INFO(leaves << ": " << late.text() << "\n" << run.run.text(what.yaml()));
    CHECK(run.run.summary().epochs >= what.epochs);
  }
}

TEST_CASE("a missed step is repeated, not downloaded with all of the state") {
  joining what;
  what.late_start = 30; // epoch 1 or 2: two gradients are less than a state of three
  const auto run = watch(what);
  const auto& late = run.of.at("late-0");
  INFO(late.text());
  CHECK(late.states == 0);
  CHECK(late.steps >= 1);
  CHECK(late.bytes == 4'000'000 * late.steps);
  REQUIRE(late.contributed);
  CHECK(*late.contributed <= *late.swarm_at_boot + 1);
}

namespace {

/// Six donors with better lines than all others, the best one first; the joiner's download of 12 MB
/// lasts ten seconds.
joining with_donors() {
  joining what;
  what.peers = 10;
  for (int i = 0; i < 6; ++i)
    what.more_peers += fmt::format("  r{}: {{count: 1, up: {}Mbit, down: 100Mbit, device: fast}}\n",
                                   i, 60 - 4 * i);
  what.late_down = "10Mbit";
  return what;
}

constexpr double state_bytes = 12e6;

} // namespace

TEST_CASE("donors killed one after another during the download cost no restart") {
  for (const char* scope : {"process", "machine"})
    for (const double start : {60.0, 66.0, 72.0}) {
      auto what = with_donors();
      what.late_start = start;
      for (int i = 0; i < 5; ++i)
        what.faults.push_back(fmt::format("{{kill: {}, select: r{}-0, at: {}ms}}", scope, i,
                                          static_cast<int>(1000 * start) + 3000 + 1200 * i));
      const auto run = watch(what);
      const auto& late = run.of.at("late-0");
      INFO(std::string(scope) << " " << start << ": " << late.text());
      CHECK(late.states == 1);
      CHECK(late.ended.size() == 1); // nothing failed
      const auto needed = state_bytes + 4e6 * static_cast<double>(late.steps);
      CHECK(static_cast<double>(late.bytes) == needed); // no chunk came twice
      // The sum includes transfers from dead peers that were on their way, and the lists of hashes.
      // (Other peers that missed a step repeat it.)
      double fetched = 0;
      for (const auto& [name, one] : run.of) fetched += static_cast<double>(one.bytes);
      const auto sent = static_cast<double>(run.run.summary().bytes_sent.state);
      INFO("sent " << sent << " of " << fetched);
      CHECK(sent <= 1.1 * fetched);
      CHECK(late.largest_donors >= 6);
      REQUIRE(late.contributed);
      CHECK(*late.contributed <= *late.swarm_at_boot + 2);
    }
}

TEST_CASE("over a line on which a download takes several epochs a joiner repeats the steps it has "
          "missed") {
  joining what;
  what.late_down = "7Mbit"; // at best 14 s for a state, 4.6 s for a step, and 8 s for an epoch
  what.late_up = "10Mbit";
  what.target_batch = 3200;
  what.late_start = 60;
  what.epochs = 30;
  const auto run = watch(what);
  const auto& late = run.of.at("late-0");
  INFO(late.text());
  CHECK(late.states == 1);
  CHECK(late.steps >= 2);
  REQUIRE(late.contributed);
}

TEST_CASE(
    "a line that is too slow for the swarm is said to be, after a bounded number of downloads") {
  joining what;
  what.late_down = "1Mbit";
  what.late_up = "1Mbit";
  what.late_start = 70;
  what.epochs = 40;
  const auto run = watch(what);
  const auto& late = run.of.at("late-0");
  INFO(late.text());
  CHECK(late.ended.at("too_slow") >= 1);
  CHECK(late.states <= late.ended.at("too_slow") + 1);
  CHECK(late.steps <= 5 * late.states);
  CHECK(!late.contributed);
}

TEST_CASE("a crowd of joiners is spread over the donors, and all of them come in") {
  joining what;
  what.peers = 4;
  what.late_count = 16;
  what.late_down = "50Mbit";
  what.training = ", max_uploads: 2";
  what.target_batch = 3200;
  what.late_start = 120;
  what.epochs = 16;
  const auto run = watch(what);
  std::uint64_t busy = 0;
  for (unsigned i = 0; i < what.late_count; ++i) {
    const auto& late = run.of.at(fmt::format("late-{}", i));
    INFO("late-" << i << ": " << late.text());
    REQUIRE(late.contributed);
    CHECK(late.states == 1);
    if (const auto found = late.ended.find("busy"); found != late.ended.end())
      busy += found->second;
  }
  CHECK(busy > 0);
}

TEST_CASE("the last remaining peer carries the run on, and a new swarm grows from it") {
  joining what;
  what.kind = "quadratic";
  what.parameters = "2000";
  what.up = "1Mbit";
  what.down = "20Mbit";
  what.late_up = "1Mbit";
  what.late_down = "4Mbit";
  what.target_batch = 64;
  what.chunk = "2KiB";
  what.peers = 15;
  what.more_peers = "  last: {count: 1, up: 1Mbit, down: 20Mbit, device: fast}\n";
  what.late_start = 30;
  what.late_count = 15;
  what.epochs = 40;
  what.faults = {"{kill: machine, select: 'p-*', at: 15s}"};
  const auto run = watch(what);
  CHECK(run.run.summary().peers.alive == 16);
  for (unsigned i = 0; i < what.late_count; ++i) {
    const auto& late = run.of.at(fmt::format("late-{}", i));
    INFO("late-" << i << ": " << late.text());
    CHECK(late.contributed);
  }
}

TEST_CASE("a host says its first word a boot time after each start, whatever starts it") {
  const auto group = [](const std::string& more) {
    return "  late: {count: 1, up: 1Mbit, down: 40Mbit, device: fast, " + more + "}\n";
  };
  const auto starts = [&](const std::string& more, const std::string& fault = "") {
    auto all = seconds_until_first_word(group(more), fault);
    return all["late-0"];
  };
  const auto about = [](double seconds) { return doctest::Approx(seconds).epsilon(1e-6); };
  const auto plain = starts("start: 1s");
  REQUIRE(plain.size() == 1);
  CHECK(plain[0] == about(1));
  const auto booted = starts("start: 1s, boot_time: 700ms");
  REQUIRE(booted.size() == 1);
  CHECK(booted[0] == about(1.7));
  const auto again = starts("start: 1s, boot_time: 700ms",
                            "{restart: process, select: late-*, at: 2s, downtime: 300ms}");
  REQUIRE(again.size() == 2);
  CHECK(again[1] == about(3.0));
  const auto joined =
      starts("absent: true, boot_time: 700ms", "{join: host, select: late-*, at: 2s}");
  REQUIRE(joined.size() == 1);
  CHECK(joined[0] == about(2.7));
}

TEST_CASE("a host that ends while it boots says nothing") {
  const auto starts = [](const std::string& more, const std::string& fault = "") {
    auto all = seconds_until_first_word(
        "  late: {count: 1, up: 1Mbit, down: 40Mbit, device: fast, boot_time: 2s, " + more + "}\n",
        fault);
    return all["late-0"].size();
  };
  CHECK(starts("start: 1s", "{kill: process, select: late-*, at: 2s}") == 0);
  CHECK(starts(
            "start: 1s, churn: {session: {distribution: exponential, mean: 100ms, at_most: 1s}}") ==
        0);
}

TEST_CASE("a run may end while all its hosts boot") {
  swarm what;
  what.open = "boot_time: 1min";
  scenarios::runner_options options;
  options.until = std::chrono::seconds(1);
  const auto run = run_yaml(what.yaml(), 0, std::move(options));
  INFO(run.text(what.yaml()));
  CHECK(run.errors.empty());
  CHECK(run.summary().epochs == 0);
}

TEST_CASE("a newcomer that asks a dead host for the chain asks another one at once") {
  // Half of the hosts die just before the newcomer comes, and their records stay for a while.
  const std::string yaml =
      "stop_time: 50s\n"
      "network: {default_delay: 20ms, detection_time: 3s}\n"
      "devices: {fast: {samples_per_second: 40, jitter: 10%, step_time: 10ms}}\n"
      "peers:\n"
      "  p: {count: 8, up: 20Mbit, down: 100Mbit, device: fast, start_spacing: 10ms}\n"
      "  late: {count: 1, up: 20Mbit, down: 100Mbit, device: fast, start: 30.3s}\n"
      "workload: {kind: timing, parameters: 10000, sample_size: 64B}\n"
      "training: {target_batch: 1600, micro_batch: 8, epochs: 12, optimizer: {kind: adamw, "
      "learning_rate: 0.01}}\n"
      "averaging: {matchmaking_time: 3s, round_timeout: 60s, sender_timeout: 8s}\n"
      "faults: [{kill: process, select: 'p-[0-3]', at: 30s}]\n"
      "record: {events: none}\n";
  std::map<std::string, std::int64_t> first;
  scenarios::runner_options options;
  options.on_observation = [&](const actors::host& from, const actors::observation& seen) {
    const auto* phase = actors::get_if<actors::phase_changed>(&seen);
    if (phase && from.name() == "late-0")
      first.try_emplace(phase->phase == actors::peer_phase::downloading ? "knows" : "starts",
                        from.utc_ns());
  };
  const auto run = run_yaml(yaml, 0, std::move(options));
  INFO(run.text(yaml));
  CHECK(run.errors.empty());
  REQUIRE(first.size() == 2);
  // The question to a dead host stayed open for five seconds.
  CHECK(static_cast<double>(first["knows"] - first["starts"]) / 1e9 < 1);
}
