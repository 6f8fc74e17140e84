// 'shoal sweep': grids of runs, killed and gone on with, the same table every time, and what is
// refused.
#include "tests/e2e/support/program.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <csignal>
#include <map>

using namespace shoal::e2e;
namespace fs = std::filesystem;

namespace {

constexpr const char* scenario =
    "stop_time: 10h\n"
    "workload: {kind: timing, parameters: 1000}\n"
    "devices: {laptop: {samples_per_second: 10, jitter: 10%}}\n"
    "peers: {home: {count: 3, up: 10Mbit, down: 50Mbit, device: laptop}}\n"
    "training: {target_batch: 16, micro_batch: 4, epochs: 3}\n"
    "record: {events: none}\n";

constexpr const char* tables[] = {"table.csv", "table.md", "cells.csv", "sweep.html"};

struct setting {
  scratch_folder folder;
  std::string file = (folder / "s.yaml").string();
  explicit setting(const std::string& text = scenario) { spill(folder / "s.yaml", text); }

  std::string out(const std::string& name) const { return (folder / name).string(); }
  program_result sweep(const std::string& name, std::vector<std::string> more,
                       const program_options& options = {}) const {
    std::vector<std::string> arguments{"sweep", file, "--out", out(name)};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_program(arguments, options);
  }
  /// When each finished cell got its summary.
  std::map<std::string, fs::file_time_type> finished(const std::string& name) const {
    std::map<std::string, fs::file_time_type> out;
    for (const auto& cell : fs::directory_iterator(folder / name / "cells"))
      if (cell.path().extension() != ".partial")
        out[cell.path().filename().string()] = fs::last_write_time(cell.path() / "summary.json");
    return out;
  }
  void check_same_tables(const std::string& a, const std::string& b) const {
    for (const auto* table : tables) {
      INFO(table);
      CHECK(slurp(folder / a / table) == slurp(folder / b / table));
    }
  }
};

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

} // namespace

TEST_CASE("sweeps of the same seeds have the same tables, however many cells run at a time") {
  const setting t;
  const std::vector<std::string> grid{"--vary",  "training.micro_batch=2,4",
                                      "--vary",  "peers.home.up=5Mbit..20Mbit:2",
                                      "--seeds", "2"};
  auto with = [&](const std::string& jobs) {
    auto out = grid;
    out.insert(out.end(), {"-j", jobs});
    return out;
  };
  const auto one = t.sweep("one", with("1"));
  INFO(one.err);
  REQUIRE(one.exit == 0);
  CHECK(has(one.out, "mean ± 95 % confidence interval by Student's t over 2 seeds"));
  const auto three = t.sweep("three", with("3"));
  REQUIRE(three.exit == 0);
  t.check_same_tables("one", "three");
  const auto csv = slurp(t.folder / "one" / "table.csv");
  CHECK(std::count(csv.begin(), csv.end(), '\n') == 5);
  CHECK(csv.starts_with(
      "training.micro_batch,peers.home.up,runs,virtual_seconds,virtual_seconds.ci95,"));
  CHECK(has(csv, "\n2,5Mbit,2,"));
  // A cell is the run that its options and seed give.
  const auto cell = nlohmann::json::parse(slurp(t.folder / "one" / "cells" / "7" / "summary.json"));
  const auto alone = run_program({"run", t.file, "--set", "training.micro_batch=4", "--set",
                                  "peers.home.up=20Mbit", "--seed", "2", "--json"});
  REQUIRE(alone.exit == 0);
  CHECK(nlohmann::json::parse(alone.out)["event_hash"] == cell["event_hash"]);
  // Other seeds, other figures.
  const auto other = t.sweep("other", {"--vary", "training.micro_batch=2,4", "--vary",
                                       "peers.home.up=5Mbit,20Mbit", "--seeds", "3,4"});
  REQUIRE(other.exit == 0);
  CHECK(slurp(t.folder / "other" / "table.csv") != csv);
}

TEST_CASE("a sweep that was killed goes on with what is missing, and its table is that of one that "
          "was not") {
  const setting t;
  // The last cells take long enough to be killed in.
  const std::vector<std::string> grid{"--vary", "training.epochs=2,3,1000", "--seeds", "2", "-j",
                                      "1"};
  program_options kill;
  kill.signal = SIGKILL;
  kill.signal_when = t.folder / "killed" / "cells" / "3" / "summary.json";
  const auto first = t.sweep("killed", grid, kill);
  REQUIRE(first.exit == 1000 + SIGKILL);
  CHECK(!fs::exists(t.folder / "killed" / "table.csv"));
  const auto before = t.finished("killed");
  CHECK(before.size() >= 4);
  CHECK(before.size() < 6);
  const auto again = t.sweep("killed", grid);
  INFO(again.err);
  REQUIRE(again.exit == 0);
  const auto after = t.finished("killed");
  CHECK(after.size() == 6);
  for (const auto& [cell, time] : before) CHECK(after.at(cell) == time);
  REQUIRE(t.sweep("whole", grid).exit == 0);
  t.check_same_tables("killed", "whole");
  for (const auto& item : fs::directory_iterator(t.folder / "killed" / "cells"))
    CHECK(item.path().extension() != ".partial");
  // Nothing is left to do: the table is made again, the cells stay.
  const auto third = run_program({"sweep", "--out", t.out("killed"), "--json"});
  REQUIRE(third.exit == 0);
  CHECK(nlohmann::json::parse(third.out)["points"].size() == 3);
  CHECK(t.finished("killed") == after);
}

TEST_CASE("an interrupted sweep ends its processes, keeps what is finished and says how to go on") {
  const setting t;
  const std::vector<std::string> grid{"--vary", "training.epochs=2,500000", "-j", "2"};
  program_options interrupt;
  interrupt.signal = SIGINT;
  interrupt.signal_when = t.folder / "out" / "cells" / "0" / "summary.json";
  const auto run = t.sweep("out", grid, interrupt);
  CHECK(run.exit == 130);
  CHECK(has(run.err, "interrupted: 1 of 2 cells are finished; 'shoal sweep --out " + t.out("out") +
                         "' goes on\n"));
  CHECK(t.finished("out").size() == 1);
  CHECK(!fs::exists(t.folder / "out" / "table.csv"));
}

TEST_CASE("a cell that fails is told with its last words, the others go on, and it is run again "
          "the next time") {
  const setting t(std::string(scenario) + "expect: {epochs: {min: 3}}\n");
  const std::vector<std::string> grid{"--vary", "training.epochs=2,3,4"};
  const auto run = t.sweep("out", grid);
  CHECK(run.exit == 3);
  CHECK(has(run.err, "error: cell 0 (training.epochs=2, seed 1): exit status 3: error: expect"));
  CHECK(has(run.err, "cells/NUMBER.partial/run.log"));
  CHECK(t.finished("out").size() == 2);
  CHECK(has(slurp(t.folder / "out" / "table.csv"), "\n2,0,,,,"));
  CHECK(has(slurp(t.folder / "out" / "table.csv"), "\n3,1,"));
  CHECK(t.sweep("out", grid).exit == 3);
}

TEST_CASE("parts of a sweep together are the sweep") {
  const setting t;
  const std::vector<std::string> grid{"--vary", "training.epochs=2,3,4", "--seeds", "2"};
  REQUIRE(t.sweep("whole", grid).exit == 0);
  auto with = grid;
  with.insert(with.end(), {"--slurm", "--program", "/opt/shoal"});
  const auto written = t.sweep("parts", with);
  INFO(written.err);
  REQUIRE(written.exit == 0);
  CHECK(!fs::exists(t.folder / "parts" / "cells"));
  const auto array = slurp(t.folder / "parts" / "array.sbatch");
  CHECK(has(array, "#SBATCH --array=0-5%"));
  CHECK(has(array, "exec /opt/shoal sweep --out " + t.out("parts") +
                       " --part \"$SLURM_ARRAY_TASK_ID/6\""));
  for (const auto* part : {"0/2", "1/2"}) {
    const auto run = run_program({"sweep", "--out", t.out("parts"), "--part", part});
    INFO(run.err);
    REQUIRE(run.exit == 0);
    CHECK(run.out.empty());
  }
  CHECK(t.finished("parts").size() == 6);
  CHECK(!fs::exists(t.folder / "parts" / "table.csv"));
  const auto cells = t.finished("parts");
  REQUIRE(run_program({"sweep", "--out", t.out("parts")}).exit == 0);
  CHECK(t.finished("parts") == cells);
  t.check_same_tables("parts", "whole");
}

TEST_CASE("the errors of a sweep are reported before anything runs") {
  const setting t;
  struct wrong {
    std::vector<std::string> arguments;
    int exit;
    const char* says;
  };
  for (const auto& [arguments, exit, says] :
       {wrong{{"--vary", "averaging.groop_size=4,8"},
              1,
              "--vary averaging.groop_size=4: error: unknown key 'groop_size' in averaging\nnote: "
              "did you mean 'group_size'?\n"},
        wrong{{"--vary", "peers.home.up=5Mbit,10Mbps"},
              1,
              "note: in the cells with peers.home.up=10Mbps; nothing was run\n"},
        wrong{{"--vary", "averaging.group_size="},
              2,
              "error: --vary averaging.group_size=: no values\n"},
        wrong{
            {"--vary", "averaging.group_size=4..4:3"}, 2, "the range is empty: both ends are 4\n"},
        wrong{{"--vary", "averaging.group_size=16..4:3"},
              2,
              "the range runs backwards: 16 is above 4\n"},
        wrong{{"--vary", "averaging.group_size=4", "--seeds", "0"},
              2,
              "error: --seeds 0: at least one seed is needed\n"},
        wrong{{"--vary", "averaging.group_size=2..1001:1000", "--seeds", "101"},
              2,
              "error: the grid has more than 100000 cells;"},
        wrong{{},
              2,
              "error: there is nothing to sweep: give --vary PATH=VALUES, or several --seeds\n"},
        wrong{{"--seeds", "2", "--metric", "loss.finel"},
              2,
              "error: --metric: unknown metric 'loss.finel'; did you mean 'loss.final'?\n"},
        wrong{{"--seeds", "2", "--part", "2/2"},
              2,
              "error: --part 2/2: expected I/N with I below N, as in 0/4\n"},
        wrong{{"--seeds", "2", "--set", "world=cluster"},
              1,
              "a sweep runs each cell in one process"}}) {
    const auto run = t.sweep("out", arguments);
    INFO(says, "\n", run.err);
    CHECK(run.exit == exit);
    CHECK(has(run.err, says));
    CHECK(!fs::exists(t.folder / "out"));
  }
  CHECK(has(run_program({"sweep", t.out("none.yaml"), "--seeds", "2", "--out", t.out("out")}).err,
            "none.yaml: error: cannot be read"));
  CHECK(run_program({"sweep"}).exit == 2);
}

TEST_CASE("a directory that is something else, or another sweep, is refused with the difference") {
  const setting t;
  fs::create_directory(t.folder / "mine");
  spill(t.folder / "mine" / "letter.txt", "dear");
  const auto mine = t.sweep("mine", {"--seeds", "2"});
  CHECK(mine.exit == 1);
  CHECK(has(mine.err, "mine' exists and is no sweep (it has no sweep.yaml)\n"));
  CHECK(!fs::exists(t.folder / "mine" / "sweep.yaml"));
  CHECK(t.sweep("s.yaml", {"--seeds", "2"}).exit == 1);
  CHECK(run_program({"sweep", "--out", t.out("mine")}).exit == 1);

  REQUIRE(t.sweep("out", {"--vary", "training.epochs=2,3"}).exit == 0);
  const auto cells = t.finished("out");
  const auto other = t.sweep("out", {"--vary", "training.epochs=2,4"});
  CHECK(other.exit == 1);
  CHECK(has(other.err, "out' has another sweep: --vary was training.epochs=2,3 and is now "
                       "training.epochs=2,4; give another --out, or remove that one\n"));
  CHECK(has(t.sweep("out", {"--vary", "training.epochs=2,3", "--seeds", "2"}).err,
            "--seeds was 1 and is now 1,2"));
  CHECK(has(t.sweep("out", {"--vary", "training.epochs=2,3", "--set", "peers.home.count=4"}).err,
            "--set was [] and is now [\"peers.home.count=4\"]"));
  spill(t.folder / "s.yaml", std::string(scenario) + "averaging: {round_timeout: 60s}\n");
  for (const auto& changed : {t.sweep("out", {"--vary", "training.epochs=2,3"}),
                              run_program({"sweep", "--out", t.out("out")})}) {
    CHECK(changed.exit == 1);
    CHECK(has(changed.err,
              "s.yaml has changed since: averaging.round_timeout was 2min and is now 1min"));
  }
  spill(t.folder / "s.yaml", "# a remark\n" + std::string(scenario));
  CHECK(t.sweep("out", {"--vary", "training.epochs=2,3", "--metric", "epochs"}).exit == 0);
  CHECK(slurp(t.folder / "out" / "table.csv") ==
        "training.epochs,runs,epochs,epochs.ci95,epochs.min,epochs.max\n2,1,2,,2,2\n3,1,3,,3,3\n");
  CHECK(t.finished("out") == cells);
  spill(t.folder / "out" / "sweep.yaml", "seeds: 3\n");
  CHECK(has(t.sweep("out", {"--vary", "training.epochs=2,3"}).err,
            "sweep.yaml' is no plan of a sweep: 'shoal' is missing\n"));
}
