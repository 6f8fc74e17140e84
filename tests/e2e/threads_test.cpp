// Emulation under load on several threads. The runs serve mostly under ThreadSanitizer
// (tests/nightly), which checks the use of the observers, the fabric, the coordinator and the
// pools.
#include "tests/e2e/support/program.hpp"
#include "tests/e2e/support/swarm.hpp"
#include "tests/support/skip.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace shoal;
using namespace shoal::e2e;

namespace {

void run_emulated(const std::string& kind, unsigned peers, const std::string& churn,
                  const std::string& faults) {
  SHOAL_NIGHTLY();
  auto yaml = fmt::format(
      "world: emulate\n"
      "stop_time: 6s\n"
      "network: {{default_delay: 5ms, default_jitter: 2ms, detection_time: 400ms}}\n"
      "devices:\n"
      "  fast: {{samples_per_second: 100, jitter: 10%, step_time: 2ms}}\n"
      "peers:\n"
      "  p: {{count: {}, up: 20Mbit, down: 50Mbit, device: fast, start_spacing: 10ms{}}}\n"
      "workload: {{kind: {}, parameters: 4000{}}}\n"
      "training: {{target_batch: 48, micro_batch: 4, min_refresh: 50ms, max_refresh: 400ms, "
      "record_lifetime: 2s, "
      "optimizer: {{kind: sgd, learning_rate: 0.1}}}}\n"
      "averaging: {{matchmaking_time: 600ms, round_timeout: 4s, sender_timeout: 1s, chunk_size: "
      "2KiB}}\n"
      "record: {{events: all, metrics_interval: 100ms}}\n{}",
      peers, churn, kind, kind == std::string_view("timing") ? ", sample_size: 64B" : "", faults);
  scratch_folder folder;
  std::uint64_t looks = 0;
  scenarios::runner_options options;
  options.out = (folder / "out").string();
  options.threads = 2;
  options.on_status = [&](const scenarios::live_status&) { ++looks; };
  auto run = run_yaml(yaml, 1, std::move(options));
  INFO(run.text(yaml));
  CHECK(run.summary().violations() == 0);
  CHECK(run.summary().epochs > 0);
  CHECK(looks > 0);
}

const std::string churn = ", churn: {session: {distribution: exponential, mean: 2s}, gap: "
                          "{distribution: exponential, mean: 500ms}}";

} // namespace

TEST_CASE("eight emulated peers with sizes only, nightly") {
  run_emulated("timing", 8, "", "");
}
TEST_CASE("four emulated peers that compute, nightly") {
  run_emulated("quadratic", 4, "", "");
}
TEST_CASE("emulated peers that come and go, nightly") {
  run_emulated("quadratic", 6, churn, "");
}
TEST_CASE("emulated peers with sizes only that come and go, nightly") {
  run_emulated("timing", 8, churn, "");
}
TEST_CASE("emulated peers that die at each point of a round, nightly") {
  run_emulated(
      "quadratic", 8, "",
      "faults:\n"
      "  - {restart: process, select: p-1, on: all_reduce.half_sent, nth: 2, downtime: 300ms}\n"
      "  - {restart: machine, select: p-2, on: all_reduce.half_replied, nth: 3, downtime: 300ms}\n"
      "  - {restart: process, select: p-3, on: group.begun, nth: 4, downtime: 1ms}\n"
      "  - {kill: process, select: p-4, on: all_reduce.before_commit, nth: 4}\n"
      "  - {restart: process, select: p-0, at: 1500ms, downtime: 200ms}\n"
      "  - {restart: machine, select: p-5, on: training.step, nth: 20, downtime: 1ms}\n"
      "  - {kill: machine, select: p-6, on: matchmaking.joined, nth: 5}\n");
}
