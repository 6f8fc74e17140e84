#include "scenarios/compare/run_diff.hpp"
#include "tests/scenarios/compare/helpers.hpp"

#include <nlohmann/json.hpp>

using namespace shoal;
using namespace shoal::scenarios;
using namespace shoal::scenarios::test;

namespace {

struct two_runs {
  scratch temp;
  std::filesystem::path a = temp.path / "a", b = temp.path / "b";
  run_difference diff() const {
    auto out = diff_runs(a, b);
    REQUIRE_MESSAGE(out.ok(), out.error());
    return *out;
  }
};

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

const std::string one_fault =
    "faults: [{kill: process, select: home-*, on: all_reduce.half_sent, nth: 2}]\n";

} // namespace

TEST_CASE("two equal runs are the same, whatever their machines and options") {
  two_runs runs;
  make_run(runs.a, {killed(5, "home-1#0")});
  make_run(runs.b, {killed(5, "home-1#0")}, run_yaml("description: again\n"));
  const auto out = runs.diff();
  CHECK(out.same());
  CHECK(out.options.size() == 1);
  CHECK(has(to_text(out), "the runs are the same"));
}

TEST_CASE("the first effect of a fault that one run has is named, with the fault") {
  two_runs runs;
  make_run(runs.a,
           {message(1, "home-0#0/1", "home-1#0/1"), message(8, "home-0#0/1", "home-1#0/1")});
  make_run(runs.b, {message(1, "home-0#0/1", "home-1#0/1"), killed(5, "home-3#0")},
           run_yaml(one_fault), summary_json("bb", "2.75"));
  const auto out = runs.diff();
  CHECK(!out.same());
  CHECK(out.finest);
  CHECK(has(out.headline, "home-3 was killed in B at 0.000000005 s, and not in A"));
  CHECK(has(out.headline, "a fault that only B has: {kill: process, select: home-*"));
  const std::string text = to_text(out);
  CHECK(has(text, out.headline));
  CHECK(has(text, "loss.final"));
  CHECK(has(text, "+10 %"));
  CHECK(has(text, "only in B: {kill: process"));
}

TEST_CASE("a host's end that no single fault explains is named without one") {
  two_runs runs;
  make_run(runs.a, {message(8, "home-0#0/1", "home-1#0/1")});
  make_run(runs.b, {killed(5, "home-3#0")});
  CHECK(runs.diff().headline == "home-3 was killed in B at 0.000000005 s, and not in A");
}

TEST_CASE("logs of rounds are compared as far as they go, and the note says how to see more") {
  two_runs runs;
  make_run(runs.a, {message(1, "home-0#0/1", "home-1#0/1"), started(2, "home-0#0")});
  make_run(runs.b, {started(2, "home-0#0")}, run_yaml("", "rounds"), summary_json("bb"));
  const auto out = runs.diff();
  CHECK(out.history_compared);
  CHECK(!out.history);
  CHECK(!out.finest);
  CHECK(!out.same()); // the event hash
  REQUIRE(!out.notes.empty());
  CHECK(has(out.notes[0], "B recorded only rounds and hosts"));
  CHECK(has(out.notes[0], "--set record.events=all"));
}

TEST_CASE(
    "a run without events, and samples of different peers, are compared by their metrics alone") {
  two_runs runs;
  make_run(runs.a, {}, run_yaml("", "none"));
  make_run(runs.b, {killed(1, "home-0#0")});
  CHECK(!runs.diff().history_compared);
  CHECK(has(runs.diff().notes.at(0), "A recorded no events"));
  std::string sampled = run_yaml();
  sampled.replace(sampled.find("peers: 0}"), 9, "peers: 2}");
  make_run(runs.a, {}, sampled);
  CHECK(!runs.diff().history_compared);
  CHECK(runs.diff().same());
}

TEST_CASE("the JSON of a difference has everything as values") {
  two_runs runs;
  make_run(runs.a, {});
  make_run(runs.b, {killed(5, "home-3#0")}, run_yaml(one_fault), summary_json("bb", "2.75"));
  const auto json = nlohmann::json::parse(to_json(runs.diff()));
  CHECK(json["same"] == false);
  CHECK(json["detail"] == "all");
  CHECK(json["divergence"]["common"] == 0);
  CHECK(json["divergence"]["a"].empty());
  CHECK(json["divergence"]["b"][0]["host"] == "home-3#0");
  CHECK(json["metrics"][1]["name"] == "loss.final");
  CHECK(json["metrics"][1]["relative"].get<double>() == doctest::Approx(0.1));
  CHECK(json["options"][0]["path"] == "faults");
  CHECK(json["options"][0]["a"].is_null());
}

TEST_CASE("a directory that is none, or of no run, or lacks a file, is an error that says so") {
  two_runs runs;
  make_run(runs.a, {});
  const auto error = [&] { return diff_runs(runs.a, runs.b).error(); };
  CHECK(has(error(), "is no directory"));
  std::filesystem::create_directory(runs.b);
  CHECK(has(error(), "no directory of a run"));
  write(runs.b / "run.yaml", run_yaml());
  CHECK(has(error(), "summary.json"));
  write(runs.b / "summary.json", "{\"cut");
  CHECK(has(error(), "damaged or cut off"));
  write(runs.b / "summary.json", summary_json());
  CHECK(has(error(), "events.jsonl.zst"));
  write(runs.b / "run.yaml", "a: [");
  CHECK(has(error(), "run.yaml"));
}
