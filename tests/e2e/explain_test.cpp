// `shoal explain`: where a transfer's time went, from the files of a run.
#include "tests/e2e/support/program.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <regex>
#include <string>

using namespace shoal::e2e;
using nlohmann::json;

namespace {

// 100 kB parts over a line of 4 Mbit and 80 ms: slow start matters, then the uplink does.
const char* text = "stop_time: 60s\n"
                   "network: {default_delay: 40ms}\n"
                   "devices: {d: {samples_per_second: 20, step_time: 20ms}}\n"
                   "peers:\n"
                   "  p: {count: 4, up: 4Mbit, down: 20Mbit, device: d}\n"
                   "workload: {kind: timing, parameters: 100000, sample_size: 64B}\n"
                   "training: {target_batch: 32, micro_batch: 4, epochs: 4}\n";

double all_seconds(const json& shares) {
  double sum = 0;
  for (const auto& share : shares) sum += share["seconds"].get<double>();
  return sum;
}

} // namespace

TEST_CASE("explain: the shares of a transfer's time are all of it, and the rates carry its bytes") {
  scratch_folder folder;
  spill(folder / "s.yaml", text);
  const auto out = (folder / "out").string();
  REQUIRE(run_program({"run", (folder / "s.yaml").string(), "--quiet", "--out", out}).exit == 0);
  bool slow_start = false, link = false;
  for (int n = 1; n <= 20; ++n) {
    const auto told = run_program({"explain", out, "--flow", std::to_string(n), "--json"});
    INFO(told.err);
    REQUIRE(told.exit == 0);
    const auto t = json::parse(told.out);
    const double took = t["arrives_seconds"].get<double>() - t["sent_seconds"].get<double>();
    CHECK(all_seconds(t["where_the_time_went"]) == doctest::Approx(took).epsilon(1e-6));
    double bits = 0;
    const auto& steps = t["steps"];
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const double end = i + 1 < steps.size() ? steps[i + 1]["at_seconds"].get<double>()
                                              : t["left_seconds"].get<double>();
      bits +=
          steps[i]["bits_per_second"].get<double>() * (end - steps[i]["at_seconds"].get<double>());
      slow_start = slow_start || steps[i]["why"] == "slow_start";
      link = link || steps[i]["why"] == "link";
    }
    CHECK(bits / 8 == doctest::Approx(t["bytes"].get<double>()).epsilon(1e-3));
  }
  CHECK(slow_start);
  CHECK(link);

  const auto round = run_program({"explain", out, "--round", "1", "--json"});
  REQUIRE(round.exit == 0);
  const auto rounds = json::parse(round.out);
  REQUIRE(rounds.size() >= 1);
  CHECK(rounds[0]["members"].size() == 4);
  CHECK(rounds[0]["transfers"] >= 12); // three parts from each of four
  CHECK(rounds[0]["last"].size() == 5);
  const double bound = rounds[0]["bound_seconds"];
  CHECK(bound > 0);
  CHECK(bound <
        rounds[0]["ended_seconds"].get<double>() - rounds[0]["started_seconds"].get<double>());
  CHECK(run_program({"explain", out, "--round", "1"}).out.find("where their time went") !=
        std::string::npos);
}

TEST_CASE("explain: a round waits for the processors of hosts that copy slowly") {
  scratch_folder folder;
  std::string slow = text;
  const std::string before = "step_time: 20ms";
  slow.replace(slow.find(before), before.size(), before + ", serialize: 2Mbit");
  spill(folder / "s.yaml", slow);
  const auto out = (folder / "out").string();
  REQUIRE(run_program({"run", (folder / "s.yaml").string(), "--quiet", "--out", out}).exit == 0);
  const auto told = run_program({"explain", out, "--round", "1"});
  INFO(told.out << told.err);
  REQUIRE(told.exit == 0);
  CHECK(told.out.find("processor of p-") != std::string::npos);
  // Lines of 4 Mbit are no limit any more.
  CHECK(told.out.find("uplink of p-") == std::string::npos);
}

TEST_CASE("explain: what is not there is said") {
  scratch_folder folder;
  spill(folder / "s.yaml", text);
  const auto out = (folder / "out").string();
  REQUIRE(run_program({"run", (folder / "s.yaml").string(), "--quiet", "--out", out, "--set",
                       "record.transfers=0"})
              .exit == 0);
  const auto none = run_program({"explain", out, "--flow", "1"});
  CHECK(none.exit == 1);
  CHECK(none.err.find("record.transfers") != std::string::npos);
  const auto late = run_program({"explain", out, "--round", "999"});
  CHECK(late.exit == 1);
  CHECK(late.err.find("no round of epoch 999") != std::string::npos);
  CHECK(run_program({"explain", (folder / "nowhere").string(), "--flow", "1"})
            .err.find("no such directory") != std::string::npos);
  CHECK(run_program({"explain", out}).exit == 0); // lists rounds
  CHECK(run_program({"explain", out, "--svg", "x.svg"}).exit == 2);
}

TEST_CASE("explain: a round is drawn with bars that have all of its transfers") {
  scratch_folder folder;
  spill(folder / "s.yaml", text);
  const auto out = (folder / "out").string(), svg = (folder / "round.svg").string();
  REQUIRE(run_program({"run", (folder / "s.yaml").string(), "--quiet", "--out", out}).exit == 0);
  const auto told = run_program({"explain", out, "--round", "1", "--json", "--svg", svg});
  INFO(told.err);
  REQUIRE(told.exit == 0);
  const auto rounds = json::parse(told.out);
  const auto drawn = slurp(svg);
  const auto count = [&](const std::string& what) {
    std::size_t n = 0;
    for (auto at = drawn.find(what); at != std::string::npos; at = drawn.find(what, at + 1)) ++n;
    return n;
  };
  std::size_t transfers = 0;
  for (const auto& round : rounds) transfers += round["transfers"].get<std::size_t>();
  CHECK(transfers >= 12);
  // Pieces that follow each other without a visible gap make one bar.
  std::size_t bars = 0, pieces = 0;
  const std::regex title("<title>[^<]*-&gt;[^<]*: [a-z_]+, (?:([0-9]+) pieces, )?[0-9]+ bytes");
  for (auto at = std::sregex_iterator(drawn.begin(), drawn.end(), title);
       at != std::sregex_iterator(); ++at) {
    ++bars;
    pieces += (*at)[1].matched ? std::stoul((*at)[1].str()) : 1;
  }
  CHECK(count("</title></rect>") == bars);
  CHECK(bars < transfers);
  CHECK(pieces == transfers);
  CHECK(count("font-weight=\"bold\"") >= 4); // a block of rows for each sender
  CHECK(count("<svg ") == 1);
  CHECK(drawn.find("a member's values") != std::string::npos);
  CHECK(run_program({"explain", out, "--flow", "1", "--svg", svg}).exit == 2);
  const auto nowhere = run_program(
      {"explain", out, "--round", "1", "--svg", (folder / "no" / "round.svg").string()});
  CHECK(nowhere.exit == 3);
  CHECK(nowhere.err.find("cannot be written") != std::string::npos);
}
