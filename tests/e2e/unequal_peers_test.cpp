// Averaging among unequal peers. Rounds take the time of the plan, and auxiliary peers carry as
// much as they can. A peer that carries less than it says is found out.
#include "kernels/averaging_plan.hpp"
#include "tests/e2e/support/swarm.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

using namespace shoal;
using namespace shoal::e2e;

namespace {

constexpr std::uint64_t values =
    4'000'000; // 16 MB: the last chunks on their way back are little of it

struct line_group {
  std::string name;
  unsigned count = 1;
  double up = 0, down = 0; // Mbit/s
  std::string more;        // ', key: value'
};

std::string yaml_of(const std::vector<line_group>& groups, const std::string& averaging,
                    const std::string& at_end = {}, unsigned epochs = 4) {
  std::string peers;
  for (const auto& g : groups)
    peers += fmt::format("  {}: {{count: {}, up: {}Mbit, down: {}Mbit, device: gpu{}}}\n", g.name,
                         g.count, g.up, g.down, g.more);
  return fmt::format("seed: 5\n"
                     "stop_time: 2h\n"
                     "network: {{model: max_min, default_delay: 0ms, default_jitter: 0ms}}\n"
                     "devices:\n"
                     "  gpu: {{samples_per_second: 10}}\n"
                     "peers:\n{}"
                     "workload: {{kind: timing, parameters: {}, sample_size: 64B}}\n"
                     "training: {{target_batch: 2000, micro_batch: 8, epochs: {}, max_refresh: 5s, "
                     "record_lifetime: 60s, optimizer: {{kind: sgd, learning_rate: 1}}}}\n"
                     "averaging: {{matchmaking_time: 10s, chunk_size: 64KiB{}}}\n"
                     "record: {{events: none}}\n{}",
                     peers, values, epochs, averaging, at_end);
}

std::vector<kernels::averaging_peer> plan_input(const std::vector<line_group>& groups) {
  std::vector<kernels::averaging_peer> out;
  for (const auto& g : groups)
    for (unsigned i = 0; i < g.count; ++i) {
      kernels::averaging_peer one{g.up * 1e6, g.down * 1e6};
      if (g.more.find("auxiliary") != std::string::npos) one.contributes = one.receives = false;
      if (g.more.find("outbound_only") != std::string::npos) one.reduces = false;
      out.push_back(one);
    }
  return out;
}

/// The traffic besides the values: CAF's type name and framing for each chunk, and TCP/IP's headers
/// for each packet.
constexpr double overhead = 1 + 40.0 / 1448 + 200.0 / (64 * 1024);

double mean_round_seconds(const std::string& yaml, unsigned epochs = 4) {
  const auto run = run_yaml(yaml, epochs);
  INFO(run.text(yaml));
  CHECK(run.errors.empty());
  CHECK(run.summary().rounds.ok >= epochs);
  REQUIRE(run.summary().rounds.mean_seconds);
  return *run.summary().rounds.mean_seconds;
}

} // namespace

TEST_CASE("unequal peers: rounds take as long as their plan says, within 5 %") {
  const std::vector<std::vector<line_group>> swarms{
      {{"p", 8, 20, 20, ""}},                                               // homogeneous
      {{"a", 2, 100, 100, ""}, {"b", 4, 50, 50, ""}, {"c", 2, 25, 25, ""}}, // heterogeneous
      {{"a", 1, 200, 200, ""}, {"b", 5, 20, 20, ""}},                       // one fat line
      {{"a", 3, 50, 100, ""}, {"b", 3, 30, 60, ", nat: outbound_only"}},    // client-only peers
      {{"p", 6, 20, 20, ""}, {"helper", 2, 100, 100, ", role: auxiliary"}}, // auxiliary peers
  };
  for (const auto& groups : swarms) {
    const auto plan = kernels::plan_averaging(plan_input(groups));
    REQUIRE(plan);
    const auto predicted = plan->seconds_per_bit * 32 * static_cast<double>(values) * overhead;
    const auto measured = mean_round_seconds(yaml_of(groups, ""));
    MESSAGE(groups.size() << " kinds of lines: predicted " << predicted << " s, simulated "
                          << measured << " s");
    CHECK(measured > 0.95 * predicted);
    CHECK(measured < 1.05 * predicted);
  }
}

TEST_CASE("unequal peers: adaptive parts against equal ones and a single reducer") {
  const std::vector<line_group> groups{
      {"a", 2, 100, 100, ""}, {"b", 4, 50, 50, ""}, {"c", 2, 25, 25, ""}};
  const auto adaptive = mean_round_seconds(yaml_of(groups, ""));
  const auto equal = mean_round_seconds(yaml_of(groups, ", split: equal"));
  const auto single = mean_round_seconds(yaml_of(groups, ", split: parameter_server"));
  MESSAGE("adaptive " << adaptive << " s, equal " << equal << " s, single " << single << " s");
  CHECK(adaptive < 0.7 * equal);
  CHECK(adaptive < 0.7 * single);
}

TEST_CASE(
    "unequal peers: whose line carries less than it says gets a smaller part after a few rounds") {
  const std::vector<line_group> honest{{"a", 5, 50, 50, ""}, {"b", 1, 10, 10, ""}};
  const std::vector<line_group> lying{{"a", 5, 50, 50, ""}, {"b", 1, 50, 50, ""}};
  const std::string slow = "faults:\n  - {throttle: both, select: b-0, at: 0s, factor: 0.2}\n";
  const auto known = mean_round_seconds(yaml_of(honest, "", "", 16), 16);
  const auto found = mean_round_seconds(yaml_of(lying, "", slow, 16), 16);
  const auto believed = mean_round_seconds(yaml_of(lying, ", split: equal", slow, 16), 16);
  MESSAGE("a line of 10 Mbit that says so " << known << " s, that says 50 Mbit " << found
                                            << " s, equal parts " << believed << " s");
  CHECK(found < 1.35 * known); // the first rounds included
  CHECK(found < 0.8 * believed);
}

TEST_CASE("unequal peers: a line that was slow for a while, and lines that are far away, do not "
          "make rounds longer for good") {
  const auto seconds = [](const std::string& split, unsigned seed) {
    const auto yaml = fmt::format(
        "seed: {}\n"
        "stop_time: 12h\n"
        "network: {{model: tcp, regions: [eu, us], links: [{{from: eu, to: eu, delay: 20ms}}, "
        "{{from: us, to: us, delay: 25ms}}, "
        "{{from: eu, to: us, delay: 50ms}}]}}\n"
        "devices:\n"
        "  gpu: {{samples_per_second: 10}}\n"
        "peers:\n"
        "  eu: {{count: 8, region: eu, up: 50Mbit, down: 100Mbit, device: gpu}}\n"
        "  us: {{count: 6, region: us, up: 50Mbit, down: 100Mbit, device: gpu}}\n"
        "workload: {{kind: timing, parameters: {}, sample_size: 64B}}\n"
        "training: {{target_batch: 2000, micro_batch: 8, epochs: 80, max_refresh: 5s, "
        "record_lifetime: 60s, optimizer: {{kind: sgd, learning_rate: 1}}}}\n"
        "averaging: {{matchmaking_time: 10s, chunk_size: 1MiB, split: {}}}\n"
        "record: {{events: none}}\n"
        "faults:\n  - {{throttle: both, select: us-0, at: 30s, duration: 2min, factor: 0.2}}\n",
        seed, values, split);
    const auto run = run_yaml(yaml, 80);
    INFO(run.text(yaml));
    CHECK(run.errors.empty());
    CHECK(run.summary().rounds.failed == 0);
    REQUIRE(run.summary().rounds.mean_seconds);
    return *run.summary().rounds.mean_seconds;
  };
  // The end of the throttle falls into a round. That round takes 13 s more or less, with either
  // split, as chance has it. The median over seeds leaves such a swarm out.
  const auto median = [&](const std::string& split) {
    std::array<double, 3> of{seconds(split, 5), seconds(split, 6), seconds(split, 7)};
    std::ranges::sort(of);
    return of[1];
  };
  const auto equal = median("equal"), adaptive = median("adaptive");
  MESSAGE("80 rounds with equal lines: equal parts " << equal << " s, adaptive ones " << adaptive
                                                     << " s");
  CHECK(adaptive < 1.02 * equal);
}
