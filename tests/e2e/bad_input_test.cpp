// The mistakes of users: exit 1, one pointed message for each mistake, nothing on stdout, and no
// file left behind.
#include "tests/e2e/support/program.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace shoal::e2e;

namespace {

const std::string fine = "stop_time: 30s\n"
                         "workload: {kind: timing, parameters: 1000}\n"
                         "devices: {laptop: {samples_per_second: 10}}\n"
                         "peers:\n"
                         "  home: {count: 2, up: 10Mbit, down: 50Mbit, device: laptop}\n"
                         "training: {target_batch: 16, micro_batch: 4, epochs: 2}\n";

std::string replaced(const std::string& what, const std::string& with) {
  auto text = fine;
  auto at = text.find(what);
  REQUIRE(at != std::string::npos);
  return text.replace(at, what.size(), with);
}

void check_refused(const std::string& text, const std::string& where, const std::string& message) {
  scratch_folder folder;
  spill(folder / "s.yaml", text);
  auto file = (folder / "s.yaml").string();
  auto run = run_program({"run", file, "--json", "--out", (folder / "out").string()});
  INFO("wanted " << where << ": error: ... " << message << "\ngot exit " << run.exit << "\n"
                 << run.err);
  CHECK(run.exit == 1);
  CHECK(run.out.empty());
  CHECK(run.err.find(fmt::format("s.yaml:{}: error: ", where)) != std::string::npos);
  CHECK(run.err.find(message) != std::string::npos);
  CHECK(!std::filesystem::exists(folder / "out"));
}

} // namespace

TEST_CASE("the scenario that the mistakes are made in runs") {
  scratch_folder folder;
  spill(folder / "s.yaml", fine);
  auto run = run_program(
      {"run", (folder / "s.yaml").string(), "--json", "--out", (folder / "out").string()});
  INFO(run.err);
  CHECK(run.exit == 0);
  CHECK(!run.out.empty());
  CHECK(std::filesystem::exists(folder / "out" / "summary.json"));
}

TEST_CASE("an unknown key is refused with what was meant") {
  check_refused(replaced("up: 10Mbit", "upp: 10Mbit"), "5:20", "did you mean 'up'?");
}
TEST_CASE("a wrong unit is refused") {
  check_refused(replaced("up: 10Mbit", "up: 10ms"), "5:24", "up");
}
TEST_CASE("a missing unit is refused") {
  check_refused(replaced("up: 10Mbit", "up: 10"), "5:24", "unit");
}
TEST_CASE("a negative rate is refused") {
  check_refused(replaced("up: 10Mbit", "up: -10Mbit"), "5:24", "up");
}
TEST_CASE("a duplicate key is refused") {
  check_refused(replaced("up: 10Mbit", "up: 10Mbit, up: 20Mbit"), "5:32", "duplicate key 'up'");
}
TEST_CASE("an empty file is refused") {
  check_refused("", "1:1", "empty");
}
TEST_CASE("zero peers are refused") {
  check_refused(replaced("count: 2", "count: 0"), "5:3", "no peers");
}
TEST_CASE("a smallest group above the largest possible swarm is refused") {
  check_refused(fine + "averaging: {min_group_size: 3}\n", "7:29",
                "min_group_size 3 can never be reached");
}
TEST_CASE("a target batch that cannot be filled before stop_time is refused") {
  check_refused(replaced("target_batch: 16", "target_batch: 10000"), "6:26",
                "cannot be filled before stop_time");
}
TEST_CASE("a missing data file is refused") {
  if (SHOAL_WITH_LEARN == 0) return;
  check_refused(replaced("kind: timing, parameters: 1000", "kind: transformer") +
                    "data: {files: [nowhere.txt]}\n",
                "7:16", "nowhere.txt");
}
TEST_CASE("a truncated or damaged data file is refused where the scenario names it, with the place "
          "in the file") {
  // zstd and brotli of 'sixteen volunteers', without their last 4 bytes; and JSON lines without the
  // last.
  const std::string zstd{"\x28\xb5\x2f\xfd\x20\x12\x91\x00\x00sixteen volun", 22};
  const std::string brotli{"\x8b\x08\x80sixteen volunt", 17};
  const std::string lines = "{\"text\": \"sixteen\"}\n{\"text\": \"volun";
  struct file {
    std::string name, content, message;
  };
  const file files[] = {
      {"a.txt.zst", zstd,
       "is truncated: it ends in the middle of its compressed data; get or pack it again (at byte "
       "22 of the file)"},
      {"a.txt.br", brotli,
       "is truncated: it ends in the middle of its compressed data; get or pack it again (at byte "
       "17 of the file)"},
      {"a.jsonl", lines,
       "line 2 is no JSON object (is the file truncated?) (at byte 35 of the file)"},
      {"b.zst", "no zstd at all", "corrupt zstd data: "},
  };
  for (const auto& [name, content, message] : files) {
    const scratch_folder folder;
    spill(folder / name, content);
    spill(folder / "good.txt", std::string(2000, 'a'));
    spill(folder / "s.yaml", replaced("kind: timing, parameters: 1000", "kind: transformer") +
                                 "data: {files: [good.txt, " + name + "]}\n");
    for (const char* command : {"check", "run"}) {
      const auto said = run_program({command, (folder / "s.yaml").string()});
      INFO(command << " " << name << ": " << said.err);
      CHECK(said.exit == 1);
      const auto file = std::filesystem::canonical(folder / name).string();
      CHECK(said.err.find("s.yaml:7:26: error: data: '" + file + "': ") != std::string::npos);
      CHECK(said.err.find(message) != std::string::npos);
      CHECK(said.err.find("error:") == said.err.rfind("error:"));
    }
  }
}
TEST_CASE("a folder for a data file is refused with what to write instead") {
  scratch_folder folder;
  check_refused(replaced("kind: timing, parameters: 1000", "kind: transformer") +
                    "data: {files: [/usr]}\n",
                "7:16", "name its files, as in '/usr/*'");
}
TEST_CASE("a target batch of nothing is refused") {
  check_refused(replaced("target_batch: 16", "target_batch: 0"), "6:26",
                "training.target_batch: has to be at least 1");
}
TEST_CASE("several mistakes are reported at once") {
  scratch_folder folder;
  spill(folder / "s.yaml", "stop_tim: 30s\nworkload: {kind: timin}\npeers: {home: {count: 0, up: "
                           "1, down: 50Mbit, device: x}}\n");
  auto run = run_program({"run", (folder / "s.yaml").string()});
  CHECK(run.exit == 1);
  for (const char* where :
       {"s.yaml:1:1", "s.yaml:2:18", "s.yaml:3:8", "s.yaml:3:30", "s.yaml:3:55"}) {
    INFO(where << "\n" << run.err);
    CHECK(run.err.find(where) != std::string::npos);
  }
}
TEST_CASE("a scenario file that is not there is refused") {
  auto run = run_program({"run", "/nonexistent/s.yaml"});
  CHECK(run.exit == 1);
  CHECK(run.out.empty());
  CHECK(run.err.find("/nonexistent/s.yaml") != std::string::npos);
}
TEST_CASE("a wrong command line is a usage error") {
  CHECK(run_program({}).exit == 2);
  CHECK(run_program({"run"}).exit == 2);
  CHECK(run_program({"rum", "x.yaml"}).exit == 2);
  CHECK(run_program({"run", "x.yaml", "--no-such-option"}).exit == 2);
}
TEST_CASE("a wrong --set is refused and named") {
  scratch_folder folder;
  spill(folder / "s.yaml", fine);
  auto run =
      run_program({"run", (folder / "s.yaml").string(), "--set", "training.epoch=3", "--json"});
  CHECK(run.exit == 1);
  CHECK(run.out.empty());
  CHECK(run.err.find("did you mean") != std::string::npos);
}

TEST_CASE("check warns of a model that does not fit into the memory of a device") {
  scratch_folder folder;
  const auto file = (folder / "s.yaml").string();
  spill(file, replaced("samples_per_second: 10", "samples_per_second: 10, memory: 10KiB"));
  const auto small = run_program({"check", file});
  CHECK(small.exit == 0);
  CHECK_MESSAGE(small.err.find("s.yaml: warning: peers.home: a host needs ") != std::string::npos,
                small.err);
  CHECK(small.err.find("for the whole model, and its device has 10.0 KiB") != std::string::npos);
  spill(file, replaced("samples_per_second: 10", "samples_per_second: 10, memory: 1GiB"));
  CHECK(run_program({"check", file}).err.empty());
}
