// Real training on the wall clock learns what it learns in virtual time.
#include "tests/e2e/support/program.hpp"
#include "tests/support/skip.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

using namespace shoal::e2e;
using nlohmann::json;

namespace {

const char* scenario = "stop_time: 4min\n"
                       "network: {default_delay: 20ms, default_jitter: 3ms}\n"
                       "devices: {d: {samples_per_second: 24, jitter: 10%, step_time: 15ms}}\n"
                       "peers:\n"
                       "  p: {count: 4, up: 20Mbit, down: 50Mbit, device: d, start_spacing: 20ms}\n"
                       "data: {files: [/usr/share/common-licenses/GPL-3]}\n"
                       "workload: {kind: transformer, layers: 1, heads: 2, dim: 48, context: 32}\n"
                       "training: {target_batch: 32, micro_batch: 4, epochs: 60, max_refresh: 1s, "
                       "optimizer: {kind: adamw, learning_rate: 0.003}}\n"
                       "averaging: {matchmaking_time: 2s}\n"
                       "record: {events: none}\n";

json summary_in(const std::string& world) {
  scratch_folder folder;
  spill(folder / "s.yaml", scenario);
  auto run = run_program(
      {"run", (folder / "s.yaml").string(), "--json", "--no-baseline", "--world", world});
  INFO(run.err);
  REQUIRE(run.exit == 0);
  return json::parse(run.out);
}

} // namespace

TEST_CASE("emulated training comes within three percent of the simulated loss and says how late it "
          "was, nightly") {
  SHOAL_NIGHTLY();
  auto simulated = summary_in("sim"), emulated = summary_in("emulate");
  double a = simulated["loss"]["final"], b = emulated["loss"]["final"],
         first = emulated["loss"]["first"];
  MESSAGE("final loss: sim " << a << ", emulate " << b << ", before training " << first
                             << "; distortion " << emulated["distortion"].dump());
  CHECK(emulated["epochs"] >= 60);
  CHECK(b < 0.8 * first);
  CHECK(b == doctest::Approx(a).epsilon(0.03));
  CHECK(simulated["distortion"].is_null());
  CHECK(emulated["distortion"]["late_steps"].is_number());
  CHECK(emulated["distortion"]["late_seconds"].is_number());
}
