// The program's output and files, as a newcomer sees them.
#include "tests/support/program.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

namespace {

struct workplace : shoal::scratch_folder {
  workplace() {
    std::ofstream(path / "s.yaml")
        << "stop_time: 60s\n"
           "workload: {kind: timing, parameters: 1000}\n"
           "devices: {laptop: {samples_per_second: 10}}\n"
           "peers: {home: {count: 3, up: 10Mbit, down: 50Mbit, device: laptop}}\n"
           "training: {target_batch: 16, micro_batch: 4, epochs: 4}\n";
  }

  shoal::program_outcome shoal(const std::string& arguments) const {
    return ::shoal::run_program(path, arguments);
  }
  std::string read(const std::string& file) const {
    std::ifstream in(path / file);
    std::stringstream out;
    out << in.rdbuf();
    return out.str();
  }
};

} // namespace

TEST_CASE("a command line with a mistake is answered with what was meant") {
  workplace here;
  auto command = here.shoal("rnu s.yaml");
  CHECK(command.status == 2);
  CHECK(command.has("did you mean 'run'?"));
  auto option = here.shoal("run s.yaml --sed 3");
  CHECK(option.status == 2);
  CHECK(option.has("unknown option --sed; did you mean --seed?"));
  CHECK(here.shoal("run").status == 2);
  for (const char* help : {"help", "--help"}) {
    auto all = here.shoal(help);
    CHECK(all.status == 0);
    CHECK(all.has("verify-data"));
  }
  auto one = here.shoal("help run");
  CHECK(one.status == 0);
  CHECK(one.has("--until"));
  CHECK(here.shoal("help rnu").status == 2);
}

TEST_CASE("check counts in grammar and warns of a group that is too small for the swarm") {
  workplace here;
  CHECK(here.shoal("check s.yaml").text == "s.yaml: fine (3 peers, 0 faults)\n");
  auto one = here.shoal("check s.yaml --set 'faults=[{kill: process, select: home-0, at: 1s}]' "
                        "--set peers.home.count=1");
  CHECK(one.has("fine (1 peer, 1 fault)"));
  auto small = here.shoal("check s.yaml --set averaging.group_size=2");
  CHECK(small.status == 0);
  CHECK(small.has("those who do not fit in the group fall out of sync"));
}

TEST_CASE("a run without --out says that nothing was kept") {
  workplace here;
  CHECK(here.shoal("run s.yaml -q").has("Nothing was kept; --out DIR keeps the run"));
  CHECK(!here.shoal("run s.yaml -q --json").has("kept"));
  CHECK(!here.shoal("run s.yaml -q --out r").has("was kept"));
}

TEST_CASE("a run that cannot have a page says so before it begins") {
  workplace here;
  setenv("SHOAL_PAGE", "/no/such/page.html", 1);
  const auto seen = here.shoal("run s.yaml --out r");
  const auto without = here.shoal("run s.yaml --out r2 --no-report");
  unsetenv("SHOAL_PAGE");
  CHECK(seen.status == 0);
  CHECK(seen.text.starts_with("warning: there will be no report.html: the page was not built "
                              "('/no/such/page.html' is not there)"));
  CHECK(!without.has("warning"));
}

TEST_CASE("the expectations of a scenario are not judged when the run is ended early") {
  workplace here;
  const std::string expect = " -q --set expect.epochs.min=4";
  CHECK(here.shoal("run s.yaml" + expect).status == 0);
  auto early = here.shoal("run s.yaml --until 2s" + expect);
  CHECK(early.status == 0);
  CHECK(early.has("expect: not judged, the run was ended early"));
  auto late = here.shoal("run s.yaml --until 59s" + expect + " --set expect.epochs.min=5");
  CHECK(late.status == 3); // all epochs were done before
  CHECK(!late.has("not judged"));
  auto stopped = here.shoal("run s.yaml --set stop_time=3s" + expect);
  CHECK(stopped.status == 3); // the scenario's own end
}

TEST_CASE("verify-data of something else says that it is no run directory") {
  workplace here;
  auto folder = here.shoal("verify-data .");
  CHECK(folder.status == 1);
  CHECK(folder.text == "error: '.' is no run directory (it has no ledger.csv)\n");
  CHECK(here.shoal("verify-data none").text ==
        "error: 'none' is no run directory (it is no directory)\n");
}

TEST_CASE("plain log lines say whose time it is") {
  workplace here;
  CHECK(here.shoal("run s.yaml").has("virtual 0s epoch "));
}

TEST_CASE("peers.csv has each life of each peer") {
  workplace here;
  REQUIRE(here.shoal("run s.yaml -q --out r --set training.epochs=0 --set stop_time=30s "
                     "--set 'faults=[{restart: machine, select: home-0, at: 5s, downtime: 2s}, "
                     "{kill: process, select: home-1, at: 9s}]'")
              .status == 0);
  CHECK(here.read("r/peers.csv") == "id,name,machine,incarnation,started_s,ended_s,reason\n"
                                    "131072,home-0,1,0,0.000000000,5.000000000,machine_killed\n"
                                    "131073,home-0,1,1,7.000000000,,\n"
                                    "196608,home-1,2,0,0.000000000,9.000000000,process_killed\n"
                                    "262144,home-2,3,0,0.000000000,,\n");
}

TEST_CASE("the program says of which sources it is, and run.yaml and replay say it too") {
  workplace here;
  const auto version = here.shoal("--version").text;
  REQUIRE(version.starts_with("shoal "));
  REQUIRE(here.shoal("run s.yaml -q --out r").status == 0);
  auto yaml = here.read("r/run.yaml");
  if (const auto open = version.find('('); open != std::string::npos)
    CHECK(yaml.find("build: \"" + version.substr(open + 1, version.find(')') - open - 1) + "\"") !=
          std::string::npos);
  CHECK(!here.shoal("replay r -q").has("build"));
  const auto at = yaml.find("x-run: {");
  REQUIRE(at != std::string::npos);
  const auto shoal_version = version.substr(6, version.find_first_of(" \n", 6) - 6);
  std::ofstream(here.path / "r/run.yaml")
      << yaml.substr(0, at) << "x-run: {shoal: \"" << shoal_version
      << "\", build: \"0ld\", data_digest: \"\"}\n";
  auto other = here.shoal("replay r -q");
  CHECK(other.status == 0);
  CHECK(other.has("the run was made by build 0ld, and this is "));
}

TEST_CASE("paths may begin with ~, and a list of one needs no brackets on the command line") {
  workplace here;
  std::ofstream(here.path / "book.txt") << std::string(5000, 'x');
  const std::string text = " --show --set workload.kind=transformer --set data.files=";
  CHECK(here.shoal("check s.yaml" + text + "'~/book.txt'")
            .has(fmt::format("files: [{}]", (here.path / "book.txt").string())));
  CHECK(here.shoal("check s.yaml" + text + "'~/none.txt'").text ==
        "--set data.files=~/none.txt: error: no such file: '~/none.txt'\n");
}

#if SHOAL_WITH_LEARN
TEST_CASE("the held-out loss is measured while it runs, and the history does not notice") {
  workplace here;
  std::ofstream text(here.path / "book.txt");
  for (int i = 0; i < 400; ++i) text << "the sea is " << i % 7 << " fathoms deep\n";
  text.close();
  const std::string run = "run s.yaml -q --no-baseline --set workload.kind=transformer --set "
                          "workload.dim=16 --set workload.context=16 "
                          "--set workload.layers=1 --set data.files=book.txt --set "
                          "training.epochs=6 --set record.held_out_every=";
  const auto losses = [&](const std::string& folder) {
    std::stringstream in(here.read(folder + "/metrics.csv"));
    std::vector<std::string> out; // different ones, in order
    std::size_t column = 0;
    for (std::string line; std::getline(in, line);) {
      std::stringstream fields(line);
      std::string field;
      for (std::size_t i = 0; std::getline(fields, field, ','); ++i)
        if (field == "loss_held_out")
          column = i;
        else if (i == column && column > 0 && !field.empty() &&
                 (out.empty() || out.back() != field))
          out.push_back(field);
    }
    return out;
  };
  REQUIRE(here.shoal(run + "2 --out often").status == 0);
  REQUIRE(here.shoal(run + "2 --out again").status == 0);
  REQUIRE(here.shoal(run + "0 --out never").status == 0);
  CHECK(losses("often").size() == 4); // first, 2, 4, last
  CHECK(losses("never").size() == 2);
  CHECK(losses("never").back() == losses("often").back());
  CHECK(here.read("often/metrics.csv") == here.read("again/metrics.csv"));
  const auto hash = [&](const std::string& folder) {
    const auto summary = here.read(folder + "/summary.json");
    return summary.substr(summary.find("event_hash"), 90);
  };
  CHECK(hash("often") == hash("never"));
}

TEST_CASE("the model's text is shown on a line each, after its prompt") {
  workplace here;
  auto run = here.shoal(
      "run s.yaml -q --no-baseline --set workload.kind=transformer --set workload.dim=16 "
      "--set workload.context=16 --set workload.layers=1 --set training.epochs=1");
  REQUIRE(run.status == 0);
  const auto at = run.text.find("\nIt continues 'The license '\n  before training  ");
  REQUIRE_MESSAGE(at != std::string::npos, run.text);
  std::stringstream lines(run.text.substr(at + 1));
  std::string line;
  for (const char* begin : {"It continues", "  before training  ", "  after            "}) {
    std::getline(lines, line);
    CHECK(line.starts_with(begin));
  }
  std::getline(lines, line);
  CHECK(line.empty());
}
#endif
