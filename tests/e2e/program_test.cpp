// The program and its run directory: --force, full disks, unwritable folders, Ctrl-C.
#include "tests/e2e/support/program.hpp"
#include "tests/support/skip.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <sstream>

using namespace shoal::e2e;
namespace fs = std::filesystem;

namespace {

/// `epochs` 0 runs until `stop`.
std::string scenario(int epochs, const std::string& stop = "60s") {
  return fmt::format("stop_time: {}\n"
                     "workload: {{kind: timing, parameters: 1000}}\n"
                     "devices: {{laptop: {{samples_per_second: 10}}}}\n"
                     "peers: {{home: {{count: 3, up: 10Mbit, down: 50Mbit, device: laptop}}}}\n"
                     "training: {{target_batch: 16, micro_batch: 4, epochs: {}}}\n"
                     "record: {{events: all}}\n",
                     stop, epochs);
}

struct setting {
  scratch_folder folder;
  std::string file = (folder / "s.yaml").string(), out = (folder / "out").string();
  explicit setting(const std::string& text = scenario(4)) { spill(folder / "s.yaml", text); }
  program_result run(const program_options& options = {}, std::vector<std::string> more = {}) {
    std::vector<std::string> arguments{"run", file, "--json", "--out", out};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_program(arguments, options);
  }
};

constexpr const char* files_of_any_run[] = {"run.yaml",         "summary.json", "metrics.csv",
                                            "events.jsonl.zst", "ledger.csv",   "rounds.csv"};

} // namespace

TEST_CASE("a run writes its directory, and what it prints is its summary.json") {
  setting t;
  auto run = t.run();
  INFO(run.err);
  REQUIRE(run.exit == 0);
  CHECK(run.out == slurp(fs::path(t.out) / "summary.json"));
  for (auto name : files_of_any_run) {
    INFO(name);
    CHECK(fs::exists(fs::path(t.out) / name));
  }
  for (const auto& item : fs::directory_iterator(t.out))
    CHECK(item.path().extension() != ".partial");
  CHECK(run_program({"verify-data", t.out}).exit == 0);
}

TEST_CASE("the resolved scenario in a run directory repeats the run") {
  setting t;
  auto first = nlohmann::json::parse(t.run().out);
  auto again = run_program({"run", (fs::path(t.out) / "run.yaml").string(), "--json"});
  INFO(again.err);
  REQUIRE(again.exit == 0);
  CHECK(nlohmann::json::parse(again.out)["event_hash"] == first["event_hash"]);
}

TEST_CASE("a directory that exists is refused unless --force") {
  setting t;
  fs::create_directory(t.out);
  spill(fs::path(t.out) / "mine.txt", "keep me");
  auto refused = t.run();
  CHECK(refused.exit == 1);
  CHECK(refused.out.empty());
  CHECK(refused.err.find(t.out) != std::string::npos);
  CHECK(refused.err.find("--force") != std::string::npos);
  CHECK(!fs::exists(fs::path(t.out) / "run.yaml"));
  CHECK(t.run({}, {"--force"}).exit == 0);
  CHECK(slurp(fs::path(t.out) / "mine.txt") == "keep me");
}

TEST_CASE("a disk that fills up ends the run with exit 3 and the path of the file") {
  // Each limit strikes another file: the scenario, the log, the ledger, the metrics.
  for (long limit : {0L, 500L, 1500L, 3000L}) {
    setting t;
    program_options options;
    options.file_size_limit = limit;
    auto run = t.run(options);
    INFO("limit " << limit << ": exit " << run.exit << "\n" << run.err);
    CHECK(run.exit == 3);
    CHECK(run.out.empty());
    CHECK(run.err.find(t.out) != std::string::npos);
    CHECK(run.err.find("File too large") != std::string::npos);
  }
}

TEST_CASE("stdout that cannot be written ends --json with exit 3") {
  if (!fs::exists("/dev/full")) SHOAL_SKIP("there is no /dev/full here");
  setting t;
  program_options options;
  options.stdout_to = "/dev/full";
  CHECK(t.run(options).exit == 3);
}

TEST_CASE("a folder that cannot be written is refused at once with exit 1 and its path") {
  setting t;
  // Works for root, too: a file where a folder should be.
  spill(t.folder / "blocked", "x");
  t.out = (t.folder / "blocked" / "out").string();
  auto run = t.run();
  INFO(run.err);
  CHECK(run.exit == 1);
  CHECK(run.out.empty());
  CHECK(run.err.find("blocked") != std::string::npos);
  t.out = "/proc/shoal-cannot-be-here";
  run = t.run();
  INFO(run.err);
  CHECK(run.exit == 1);
  CHECK(run.err.find(t.out) != std::string::npos);
}

TEST_CASE("exports appear while the run goes on, and a killed run leaves them") {
  auto text = scenario(0, "1000h");
  text.replace(text.find("record:"), std::string::npos,
               "record: {export: [perfetto, tensorboard], export_every: 10s}\n");
  setting t(text);
  program_options options;
  options.signal = SIGKILL;
  options.signal_when = fs::path(t.out) / "export" / "tensorboard";
  const auto run = t.run(options);
  INFO(run.err);
  CHECK(run.exit == 1000 + SIGKILL);
  CHECK(fs::file_size(fs::path(t.out) / "export" / "run.pftrace") > 1000);
  CHECK(!fs::exists(fs::path(t.out) / "summary.json"));
}

TEST_CASE("Ctrl-C in the middle ends the run cleanly and writes the directory") {
  for (int signal : {SIGINT, SIGTERM}) {
    setting t(scenario(0, "1000h"));
    program_options options;
    options.signal = signal;
    options.signal_when = fs::path(t.out) / "events.jsonl.zst.partial";
    auto run = t.run(options);
    INFO("exit " << run.exit << "\n" << run.err);
    CHECK(run.exit == 130);
    CHECK(run.err.find("interrupted") != std::string::npos);
    CHECK(run.out == slurp(fs::path(t.out) / "summary.json"));
    auto summary = nlohmann::json::parse(run.out);
    CHECK(summary["epochs"] > 0);
    CHECK(summary["virtual_seconds"] < 1000 * 3600.0);
    for (const auto& [name, check] : summary["invariants"].items()) {
      INFO(name << " " << check.dump());
      CHECK(check["violated"] == 0);
    }
    for (auto name : files_of_any_run) {
      INFO(name);
      CHECK(fs::exists(fs::path(t.out) / name));
    }
    auto verified = run_program({"verify-data", t.out});
    INFO(verified.err);
    CHECK(verified.exit == 0);
  }
}

TEST_CASE("verify-data of a folder without a run is refused") {
  scratch_folder folder;
  auto run = run_program({"verify-data", folder.path().string()});
  CHECK(run.exit == 1);
  CHECK(run.err.find("ledger.csv") != std::string::npos);
}

TEST_CASE("a workload without a baseline does not claim to train one, one that has it does, and "
          "the first row of metrics has its loss") {
  setting t;
  auto run = run_program({"run", t.file, "--out", t.out});
  INFO(run.err);
  CHECK(run.exit == 0);
  CHECK(run.err.find("epoch") != std::string::npos);
  CHECK(run.err.find("on one machine") == std::string::npos);
  auto text = scenario(4);
  spill(t.file, text.replace(text.find("timing"), 6, "quadratic"));
  run = run_program({"run", t.file, "--out", t.out, "--force"});
  INFO(run.err);
  CHECK(run.exit == 0);
  CHECK(run.err.find("on one machine") != std::string::npos);
  std::istringstream rows(slurp(fs::path(t.out) / "metrics.csv"));
  std::string header, first;
  std::getline(rows, header);
  std::getline(rows, first);
  auto field = [](const std::string& row, std::ptrdiff_t n) {
    std::istringstream fields(row);
    std::string out;
    for (; n >= 0; --n) std::getline(fields, out, ',');
    return out;
  };
  auto column =
      std::count(header.begin(),
                 header.begin() + static_cast<std::ptrdiff_t>(header.find("loss_held_out")), ',');
  CHECK(field(first, 0) == "0.000000000");
  CHECK_FALSE(field(first, column).empty());
}

TEST_CASE(
    "a node joins before it measures its untrained model, and may end before it has a state") {
  scratch_folder folder;
  spill(folder / "s.yaml", "stop_time: 1h\n"
                           "devices: {laptop: {samples_per_second: 10}}\n"
                           "peers: {home: {count: 2, up: 10Mbit, down: 50Mbit, device: laptop}}\n"
                           "workload: {kind: logistic}\n"
                           "training: {target_batch: 64, epochs: 4}\n");
  const auto done = run_program({"node", (folder / "s.yaml").string(), "--name", "home-0",
                                 "--insecure", "--listen", "127.0.0.1:0", "--until", "1ms", "--out",
                                 (folder / "out").string(), "-q"});
  INFO(done.err);
  CHECK(done.exit == 0);
  const auto summary = nlohmann::json::parse(slurp(folder / "out" / "summary.json"));
  CHECK(summary["loss"]["first"].is_number());
  // The first row is of time 0. The loss of ln 2 would be in it.
  std::istringstream rows(slurp(folder / "out" / "metrics.csv"));
  std::string names, first;
  std::getline(rows, names);
  std::getline(rows, first);
  CHECK(first.starts_with("0.000000000,"));
  CHECK(first.find("0.693147") == std::string::npos);
}
