#include "scenarios/compare/trace_diff.hpp"
#include "tests/scenarios/compare/helpers.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <string>
#include <vector>

using namespace shoal;
using namespace shoal::scenarios;
using namespace shoal::scenarios::test;

namespace {

std::string line_of(double time, const std::string& what, const std::string& more) {
  return fmt::format(R"({{"time_ns":{:.0f},"what":"{}",{}}})", time * 1e9, what, more);
}

/// Two hosts that compute for 6 s and average for `round` seconds, four times. The round of epoch 2
/// fails once before. Each second, 100 bytes are sent to average.
void make_steps(const std::filesystem::path& path, double round, const std::string& world) {
  std::vector<std::string> lines;
  const auto phase = [&](double at, const std::string& name, int epoch) {
    for (int host = 0; host < 2; ++host)
      lines.push_back(
          line_of(at, "phase_changed",
                  fmt::format(R"("host":"home-{}","phase":"{}","epoch":{})", host, name, epoch)));
  };
  const auto ends = [&](double begin, double end, int epoch, const std::string& outcome,
                        const std::string& reason) {
    lines.push_back(line_of(
        end, "round",
        fmt::format(
            R"("epoch":{},"group":"{:032x}","members":2,"outcome":"{}","reason":"{}","started_ns":{:.0f},"first_of_two":false,"samples":100)",
            epoch, lines.size(), outcome, reason, begin * 1e9)));
  };
  double at = 0;
  for (int epoch = 0; epoch < 4; ++epoch) {
    phase(at, "computing", epoch);
    at += 6;
    phase(at, "averaging", epoch);
    if (epoch == 2) ends(at, at + 1, epoch, "failed", "sender_lost");
    ends(at, at + round, epoch, "ok", "none");
    at += round;
  }
  summary totals;
  totals.scenario = "made";
  totals.seed = 1;
  totals.world = world;
  totals.epochs = 4;
  totals.rounds = {4, 0, 0, 1, {{"sender_lost", 1}}, round};
  make_run(path, lines, run_yaml(), to_json(totals));
  std::string rows = "time,bytes_data,bytes_averaging,bytes_state,bytes_control\n";
  for (int second = 0; second <= 40; ++second)
    rows += fmt::format("{}.0,0,{},0,\n", second, 100 * second);
  write(path / "metrics.csv", rows);
}

const traced_figure& figure(const trace_difference& of, const std::string& name) {
  for (const traced_figure& one : of.figures)
    if (one.name == name) return one;
  FAIL("no such figure: " << name);
  return of.figures.front();
}

} // namespace

TEST_CASE("a step's time splits into the wait, the round and the phases of its hosts") {
  scratch temp;
  make_steps(temp.path / "run", 2, "sim");
  const auto record = read_run_record(temp.path / "run");
  REQUIRE_MESSAGE(record.ok(), record.error());
  const auto steps = read_steps(*record);
  REQUIRE_MESSAGE(steps.ok(), steps.error());
  REQUIRE(steps->size() == 4);
  for (const step_trace& each : *steps) {
    CHECK(each.seconds() == doctest::Approx(8));
    CHECK(each.wait == doctest::Approx(6));
    CHECK(each.round == doctest::Approx(2));
    CHECK(each.rounds == (each.epoch == 2 ? 2 : 1));
    CHECK(each.members == 2);
    CHECK(each.samples == 100);
    CHECK(each.outcome == "ok");
    CHECK(each.phases.at("computing") == doctest::Approx(6));
    CHECK(each.phases.at("averaging") == doctest::Approx(2));
    CHECK(each.bytes[1] == doctest::Approx(800));
    CHECK(each.bytes[0] == 0);
  }
}

TEST_CASE("a simulation and a real run are held against each other step by step") {
  scratch temp;
  make_steps(temp.path / "sim", 2, "sim");
  make_steps(temp.path / "real", 3, "loopback");
  const auto found = diff_traces(temp.path / "sim", temp.path / "real");
  REQUIRE_MESSAGE(found.ok(), found.error());
  CHECK(found->steps.size() == 3); // without the first
  CHECK(figure(*found, "round").a == doctest::Approx(2));
  CHECK(figure(*found, "round").b == doctest::Approx(3));
  CHECK(*figure(*found, "round").ratio == doctest::Approx(1.5));
  CHECK(*figure(*found, "computing").ratio == doctest::Approx(1));
  CHECK(*figure(*found, "all").ratio == doctest::Approx(9.0 / 8));
  CHECK(!figure(*found, "data").ratio);
  const auto text = to_text(*found);
  for (const char* part : {"sim", "loopback", "until the group closes", "sender_lost",
                           "steps furthest apart", "first step"})
    CHECK_MESSAGE(text.find(part) != std::string::npos, text);
  const auto json = nlohmann::json::parse(to_json(*found));
  CHECK(json["steps"].size() == 3);
  CHECK(json["steps"][1]["a"]["rounds"] == 2);
  CHECK(json["a"]["by_reason"]["sender_lost"] == 1);
}

TEST_CASE("runs without a common epoch or without rounds are refused") {
  scratch temp;
  make_steps(temp.path / "sim", 2, "sim");
  make_run(temp.path / "none", {}, run_yaml(), *read_file(temp.path / "sim/summary.json"));
  write(temp.path / "none/metrics.csv", "time\n");
  const auto found = diff_traces(temp.path / "sim", temp.path / "none");
  REQUIRE(!found.ok());
  CHECK(found.error().find("has no step to compare") != std::string::npos);
  CHECK(!diff_traces(temp.path / "sim", temp.path / "nowhere").ok());
}
