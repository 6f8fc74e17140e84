// Every scenario that comes with the project loads, runs for a while and breaks nothing.
#include "scenarios/bench/run_averaging_study.hpp"
#include "scenarios/programs/program.hpp"
#include "scenarios/programs/staleness_study.hpp"
#include "scenarios/runner/runner.hpp"
#include "scenarios/schema/load.hpp"
#include "scenarios/workloads/workload.hpp"
#include "tests/support/reference_data.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

using namespace shoal;

namespace {

std::vector<std::string> shipped_scenarios() {
  std::vector<std::string> out;
  for (const auto& item : std::filesystem::recursive_directory_iterator("scenarios"))
    if (item.path().extension() == ".yaml") out.push_back(item.path().string());
  std::sort(out.begin(), out.end());
  return out;
}

/// Runs a few restarts of each cell of a study. Expectations are about all restarts.
void try_study(scenarios::averaging_study what) {
  what.restarts = std::min<std::uint64_t>(what.restarts, 2);
  const auto run = scenarios::run_averaging_study(what, 1, {});
  REQUIRE(run);
  CHECK(run->cells.size() == what.strategies.size() * what.failures.size());
  CHECK(run->expectations.size() == what.expect.size());
  for (const auto& cell : run->cells) {
    CHECK(cell.figures.restarts.size() == what.restarts);
    CHECK(cell.figures.misbehaved + cell.figures.bypassed == 0);
  }
}

/// False: the images are not here.
bool shorten_staleness(scenarios::staleness_study& what) {
  const auto images = reference_file("mnist_t10k/t10k-images-idx3-ubyte.gz");
  if (images.empty()) return false;
  what.images = images.string();
  what.labels = (images.parent_path() / "t10k-labels-idx1-ubyte.gz").string();
  what.updates = what.evaluate_every = 32;
  return true;
}

/// A scenario that shows what lies beyond a guarantee is warned about. No other one may be.
bool is_meant(const std::string& file, const std::string& warning) {
  return file.ends_with("byzantine.yaml") &&
         warning.find("7 of 16 hosts do not behave honestly") != std::string::npos;
}

} // namespace

TEST_CASE("every scenario of the project runs for its first half minute without a violation") {
  auto files = shipped_scenarios();
  REQUIRE(!files.empty());
  for (const auto& file : files) {
    INFO(file);
    auto loaded = scenarios::load(file);
    REQUIRE(loaded.value);
    for (const auto& warning : loaded.warnings) {
      INFO(warning.message);
      CHECK(is_meant(file, warning.message));
    }
    if (loaded.value->program.options.holds<scenarios::averaging_study>()) {
      try_study(loaded.value->program.as<scenarios::averaging_study>());
      continue;
    }
    if (loaded.value->program.options.holds<scenarios::staleness_study>() &&
        !shorten_staleness(loaded.value->program.as<scenarios::staleness_study>())) {
      MESSAGE(file << ": no images in $SHOAL_DATA or ../shared/data");
      continue;
    }
    if (const auto& program = loaded.value->program.definition(); !program.on_runner()) {
      const auto run = program.run(*loaded.value, {});
      REQUIRE(run);
      CHECK(run->errors.empty());
      continue;
    }
    if (loaded.value->workload.definition().name == "dalle" &&
        !std::filesystem::exists(loaded.value->data.files.front())) {
      MESSAGE(file << ": no prepared pictures; tests of shoal draw run it with some");
      continue;
    }
    if (SHOAL_WITH_LEARN == 0 && loaded.value->workload.definition().learns_text) continue;
    loaded.value->expect.clear();
    scenarios::runner_options options;
    options.until = std::chrono::seconds(30);
    options.baseline = false;
    auto runner = scenarios::runner::prepare(std::move(*loaded.value), std::move(options));
    REQUIRE(runner);
    auto run = (*runner)->run();
    REQUIRE(run);
    for (const auto& each : run->summary.invariants) {
      INFO(each.first << ": " << each.second.first_violation);
      CHECK(each.second.violated == 0);
    }
    CHECK(run->summary.peers.joined > 0);
    CHECK(run->summary.virtual_seconds <= 30.5);
  }
}

TEST_CASE("the published text-to-image run makes fifteen steps in an hour of times alone") {
  const std::vector<std::string> timing{"workload.kind=timing", "workload.parameters=125894244",
                                        "workload.sample_size=2KiB"};
  auto loaded = scenarios::load("scenarios/ttt/full.yaml", timing);
  REQUIRE(loaded.value);
  CHECK(loaded.warnings.empty());
  scenarios::runner_options options;
  options.until = std::chrono::hours(1);
  auto runner = scenarios::runner::prepare(std::move(*loaded.value), std::move(options));
  REQUIRE(runner);
  const auto run = (*runner)->run();
  REQUIRE(run);
  MESSAGE(run->summary.epochs << " steps");
  // 31,250 steps in 75 days are 17.4 in an hour.
  CHECK(run->summary.epochs >= 13);
  CHECK(run->summary.epochs <= 19);
  for (const auto& each : run->summary.invariants) {
    INFO(each.first << ": " << each.second.first_violation);
    CHECK(each.second.violated == 0);
  }
}
