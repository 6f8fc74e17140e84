// Studies of averaging as scenario files: the same figures as 'bench averaging', judged, printed
// and kept.
#include "scenarios/bench/run_averaging_study.hpp"
#include "scenarios/runner/runner.hpp"
#include "scenarios/schema/load.hpp"
#include "tests/e2e/support/program.hpp"
#include "tests/support/skip.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>

using namespace shoal;
using namespace shoal::e2e;
using namespace shoal::scenarios;
namespace fs = std::filesystem;

namespace {

constexpr const char* small = "seed: 3\n"
                              "averaging_study:\n"
                              "  strategies: [moshpit, all-reduce]\n"
                              "  peers: 9\n"
                              "  failures: [0, 0.05]\n"
                              "  rounds: 20\n"
                              "  vector: 1\n"
                              "  restarts: 4\n"
                              "  groups: given\n";

averaging_study small_study() {
  auto loaded = load_text(small, "small.yaml");
  REQUIRE(loaded.value);
  return loaded.value->program.as<averaging_study>();
}

struct kept_study {
  scratch_folder folder;
  std::string file = (folder / "small.yaml").string(), out = (folder / "out").string();
  explicit kept_study(const std::string& text) { spill(file, text); }
  program_result run(std::vector<std::string> more = {}) const {
    std::vector<std::string> arguments{"run", file};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_program(arguments);
  }
};

} // namespace

TEST_CASE("study: each cell has the figures that a benchmark of its own has") {
  const auto what = small_study();
  CHECK(what.grid == kernels::grid{3, 2});
  std::size_t heard = 0;
  study_hooks hooks;
  hooks.on_cell = [&](const study_cell&) { ++heard; };
  const auto study = run_averaging_study(what, 3, hooks);
  REQUIRE(study);
  REQUIRE(study->cells.size() == 4);
  CHECK(heard == 4);
  CHECK(study->cells[1].what.failure == 0);
  CHECK(study->cells[2].what.failure == 0.05);
  CHECK(study->cells[3].what.strategy->name == "all-reduce");
  for (const auto& cell : study->cells) {
    const auto alone = run_averaging_bench(cell.what);
    REQUIRE(alone);
    REQUIRE(alone->restarts.size() == 4);
    for (std::size_t r = 0; r < 4; ++r)
      CHECK(alone->restarts[r].distortion == cell.figures.restarts[r].distortion);
  }
}

TEST_CASE("study: expectations are judged by their bounds, or by three standard errors of the "
          "closed form") {
  auto what = small_study();
  what.failures = {0, 0.2};
  what.expect = {{"moshpit", 0, 1e-9, 2.4, std::nullopt},
                 {"moshpit", 0, 1e-9, 2.6, std::nullopt},
                 {"moshpit", 0, 1e-9, 2.6, 0.7},
                 {"all-reduce", 0, 1e-9, std::nullopt, std::nullopt},
                 {"all-reduce", 0.2, 1e-9, std::nullopt, std::nullopt},
                 {"all-reduce", 0.2, 1e-9, std::nullopt, 0.0}};
  const auto study = run_averaging_study(what, 3, {});
  REQUIRE(study);
  std::vector<bool> met;
  for (const auto& e : study->expectations) met.push_back(e.met());
  CHECK(met == std::vector<bool>{true, false, true, true, true, false});
  const auto& closed = study->expectations[4];
  CHECK(closed.rounds == kernels::all_reduce_rounds(9, 0.2, 20));
  CHECK(closed.within == doctest::Approx(3 * kernels::all_reduce_deviation(9, 0.2, 20) / 2));

  study_hooks hooks;
  hooks.progress = [](const auto&) { return false; };
  const auto stopped = run_averaging_study(what, 3, hooks);
  REQUIRE(stopped);
  CHECK(stopped->stopped);
  for (const auto& e : stopped->expectations) {
    CHECK_FALSE(e.measured);
    CHECK_FALSE(e.met());
  }
}

TEST_CASE("study: no runner is built for it") {
  auto loaded = load_text(small, "small.yaml");
  CHECK(runner::prepare(std::move(*loaded.value), {}).error() ==
        "a study of averaging is no training run");
}

TEST_CASE(
    "study: run prints the table of bench averaging, then what was expected, and keeps all of it") {
  const kept_study t(
      std::string(small) +
      "  expect: [{strategy: moshpit, rounds: 2}, {strategy: all-reduce, failure: 5%}]\n");
  const auto run = t.run({"--out", t.out});
  INFO(run.err);
  CHECK(run.exit == 0);
  CHECK(run.err.empty());
  const auto bench = run_program({"bench", "averaging", "--strategy", "moshpit,all-reduce",
                                  "--peers", "9", "--vector", "1", "--restarts", "4", "--rounds",
                                  "20", "--groups", "given", "--seed", "3", "--failure", "0.05"});
  const auto table = bench.out.substr(0, bench.out.find("\n\nmoshpit, distortion"));
  INFO(run.out << bench.out);
  CHECK(table.size() > 500);
  CHECK(run.out.find(table) != std::string::npos);
  CHECK(run.out.find("moshpit                  0   1e-09      2.00      2.00 +- 0.50") !=
        std::string::npos);
  CHECK(run.out.find("Everything is in " + t.out) != std::string::npos);

  const auto summary = nlohmann::json::parse(slurp(fs::path(t.out) / "summary.json"));
  CHECK(summary.at("scenario") == "small");
  CHECK(summary.at("failures").size() == 2);
  CHECK(summary.at("failures")[1].at("failure") == 0.05);
  CHECK(summary.at("failures")[1].at("strategies")[1].at("strategy") == "all-reduce");
  CHECK(summary.at("expectations")[0].at("met") == true);
  CHECK(summary.at("expectations")[0].at("measured") == 2);
  const auto curves = slurp(fs::path(t.out) / "curves.svg");
  CHECK(curves.find("9 peers on 3x3, failure 0.05") != std::string::npos);
  CHECK(curves.find("9 peers on 3x3, failure 0<") != std::string::npos);

  // The resolved file says the same.
  const auto again = run_program({"run", (fs::path(t.out) / "run.yaml").string(), "--json"});
  CHECK(again.exit == 0);
  const auto repeated = nlohmann::json::parse(again.out);
  CHECK(repeated.at("expectations") == summary.at("expectations"));
  CHECK(repeated.at("failures")[1].at("strategies")[0].at("distortion") ==
        summary.at("failures")[1].at("strategies")[0].at("distortion"));
  const auto refused = t.run({"--out", t.out});
  CHECK(refused.exit == 1);
  CHECK(t.run({"--out", t.out, "--force"}).exit == 0);
}

TEST_CASE("study: an expectation that is missed ends with 3, and says by how much") {
  const kept_study t(std::string(small) +
                     "  expect: [{strategy: moshpit, rounds: 9, within: 0.25}]\n");
  const auto run = t.run();
  CHECK(run.exit == 3);
  CHECK(run.err ==
        "error: expect: moshpit at failure 0 took 2.00 rounds to 1e-09, wanted 9.00 +- 0.25\n");
  CHECK(run.out.find("missed") != std::string::npos);
  CHECK(t.run({"--set", "averaging_study.expect.0.rounds=2"}).exit == 0);
  CHECK(t.run({"--set", "averaging_study.expect=[]"}).out.find("expected") == std::string::npos);
}

TEST_CASE("study: what is of training runs only is refused with the reason") {
  const kept_study t(small);
  for (const std::vector<std::string>& option : {std::vector<std::string>{"--until", "3s"},
                                                 {"--no-baseline"},
                                                 {"--check-determinism"},
                                                 {"--workers", "2"}}) {
    const auto run = t.run(option);
    CHECK(run.exit == 2);
    CHECK(run.err == fmt::format("error: {} is for training runs; {} is a study of averaging\n",
                                 option.front(), t.file));
  }
  const auto emulated = t.run({"--world", "emulate"});
  CHECK(emulated.exit == 1);
  CHECK(emulated.err.find("a study of averaging runs in virtual time") != std::string::npos);
  REQUIRE(t.run({"--out", t.out}).exit == 0);
  for (const std::vector<std::string>& command : {std::vector<std::string>{"replay", t.out},
                                                  {"diff", t.out, t.out},
                                                  {"explain", t.out, "--flow", "1"},
                                                  {"verify-data", t.out}}) {
    const auto run = run_program(command);
    INFO(command.front() << ": " << run.err);
    CHECK(run.exit == 1);
    CHECK(run.out.empty());
    CHECK(run.err.find(fmt::format("'{}' is the directory of a study of averaging", t.out)) !=
          std::string::npos);
    CHECK(run.err.find(fmt::format("'shoal run {}/run.yaml' repeats it", t.out)) !=
          std::string::npos);
  }
}

TEST_CASE("study: check says what it is, and shows nothing of a training run") {
  const kept_study t(small);
  const auto fine = run_program({"check", t.file});
  CHECK(fine.exit == 0);
  CHECK(fine.out ==
        t.file + ": fine (a study of averaging among 9 peers, 2 strategies at 2 failure rates)\n");
  const auto shown = run_program({"check", "--show", t.file, "--seed", "8"});
  CHECK(shown.exit == 0);
  CHECK(shown.out.find("seed: 8\n") != std::string::npos);
  CHECK(shown.out.find("  grid: 3x3\n") != std::string::npos);
  CHECK(shown.out.find("stop_time") == std::string::npos);
  CHECK(shown.out.find("training") == std::string::npos);
}

TEST_CASE("study: the experiments of the Moshpit paper come out as published, nightly") {
  SHOAL_NIGHTLY();
  std::size_t files = 0;
  for (const auto& item : fs::directory_iterator("scenarios/reference")) {
    if (!item.path().filename().string().starts_with("moshpit-")) continue;
    ++files;
    const auto run = run_program({"run", item.path().string()});
    INFO(item.path() << "\n" << run.out << run.err);
    CHECK(run.exit == 0);
  }
  CHECK(files == 5);
}
