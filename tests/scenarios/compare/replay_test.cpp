#include "scenarios/compare/replay.hpp"
#include "scenarios/observe/summary.hpp"
#include "scenarios/record/version.hpp"
#include "tests/scenarios/compare/helpers.hpp"

#include <chrono>
#include <fstream>
#include <vector>

using namespace shoal;
using namespace shoal::scenarios;
using namespace shoal::scenarios::test;

namespace {

const std::string this_version = to_yaml(provenance{std::string(version()), "", {}, false});

std::string error_of(const std::string& yaml, const std::string& summary = summary_json()) {
  scratch temp;
  make_run(temp.path, {}, yaml, summary);
  const auto plan = plan_replay(temp.path);
  REQUIRE(!plan.ok());
  return plan.error();
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

} // namespace

TEST_CASE("the plan of a replay is the scenario, the time limit and the hashes") {
  scratch temp;
  make_run(
      temp.path, {},
      run_yaml(to_yaml(provenance{std::string(version()), "9f", std::chrono::seconds(5), false})));
  const auto plan = plan_replay(temp.path);
  REQUIRE(plan.ok());
  CHECK(plan->what.name == "made");
  CHECK(plan->made_by.until == std::chrono::seconds(5));
  CHECK(plan->recorded == run_hashes{"aa", std::nullopt});
  CHECK(plan->notes.empty());
}

TEST_CASE("a run of another version is replayed with a warning that says what changed") {
  scratch temp;
  make_run(temp.path, {}, run_yaml(to_yaml(provenance{"0.0.1", "", {}, false})));
  const auto plan = plan_replay(temp.path);
  REQUIRE(plan.ok());
  REQUIRE(plan->notes.size() > 1);
  CHECK(has(plan->notes[0], "shoal 0.0.1"));
  CHECK(has(plan->notes[0], std::string(version())));
  bool found = false;
  for (const std::string& note : plan->notes)
    found = found || note == "run.yaml does not say averaging.group_size: 256 is taken";
  CHECK(found);
}

TEST_CASE(
    "a run of another version with an option that is unknown here is refused, with both versions") {
  const std::string error =
      error_of(run_yaml("gossip: {fanout: 3}\n" + to_yaml(provenance{"9.0.0", "", {}, false})));
  CHECK(has(error, "shoal 9.0.0"));
  CHECK(has(error, "does not understand"));
  CHECK(has(error, "gossip"));
}

TEST_CASE("a run that cannot be replayed is refused with the reason") {
  scratch temp;
  CHECK(has(plan_replay(temp.path / "none").error(), "is no directory"));
  CHECK(has(plan_replay(temp.path).error(), "run.yaml"));
  write(temp.path / "run.yaml", run_yaml(this_version));
  CHECK(has(plan_replay(temp.path).error(), "summary.json"));
  CHECK(has(error_of(run_yaml("world: emulate\n" + this_version)), "wall clock"));
  CHECK(has(error_of(run_yaml(to_yaml(provenance{std::string(version()), "", {}, true}))),
            "interrupted"));
  CHECK(has(error_of("{"), "cannot be replayed"));
  CHECK(has(error_of(run_yaml(this_version), "{"), "summary.json"));
  CHECK(has(error_of(run_yaml(this_version), "{\"event_hash\":null}"), "no event_hash"));
}

TEST_CASE("changed data are said, unchanged data are not") {
  CHECK(!data_note({"1", "9f", {}, false}, "9f"));
  CHECK(has(*data_note({"1", "9f", {}, false}, "aa"), "have changed"));
  CHECK(has(*data_note({"1", "", {}, false}, "aa"), "does not say"));
}

TEST_CASE("the verdict says which hash differs") {
  CHECK(judge_replay({"e", "s"}, {"e", "s"}).same);
  CHECK(judge_replay({"e", {}}, {"e", {}}).same);
  CHECK(!has(judge_replay({"e", {}}, {"e", {}}).text, "state"));
  const auto other_events = judge_replay({"e", "s"}, {"f", "s"});
  CHECK(!other_events.same);
  CHECK(has(other_events.text, "event hash differs: e then, f now"));
  CHECK(has(other_events.text, "state hash is the same"));
  const auto other_state = judge_replay({"e", "s"}, {"e", "t"});
  CHECK(!other_state.same);
  CHECK(has(other_state.text, "state hash differs: s then, t now"));
  CHECK(has(other_state.text, "CPU"));
  CHECK(!judge_replay({"e", "s"}, {"e", {}}).same);
}

namespace {

/// A run of ten seconds.
void make_run_of_ten_seconds(const std::filesystem::path& path, const provenance& made_by) {
  summary totals;
  totals.scenario = "made";
  totals.world = "sim";
  totals.event_hash = "aa";
  totals.virtual_seconds = 10;
  make_run(path, {}, run_yaml(to_yaml(made_by)), to_json(totals));
}

} // namespace

TEST_CASE("a branch continues from a moment within the run") {
  scratch temp;
  provenance made_by{std::string(version()), "9f", {}, false};
  made_by.branches = {{std::chrono::seconds(1), 5}, {std::chrono::seconds(3), 6}};
  make_run_of_ten_seconds(temp.path, made_by);
  const auto same = plan_branch(temp.path, std::chrono::seconds(2), {});
  REQUIRE_MESSAGE(same.ok(), (same.ok() ? "" : same.error()));
  CHECK(same->same_future);
  CHECK(same->branches == made_by.branches);
  // A new future leaves the later branch of the recorded run out.
  const auto other = plan_branch(temp.path, std::chrono::seconds(2), 7);
  REQUIRE(other.ok());
  CHECK(!other->same_future);
  CHECK(other->branches ==
        std::vector<run_branch>{{std::chrono::seconds(1), 5}, {std::chrono::seconds(2), 7}});
  const auto late = plan_branch(temp.path, std::chrono::hours(1), 7);
  REQUIRE(!late.ok());
  CHECK(has(late.error(), "--from 1h is not within the run"));
}

TEST_CASE("an interrupted run can be continued, but not with the same end") {
  scratch temp;
  make_run_of_ten_seconds(temp.path, provenance{std::string(version()), "", {}, true});
  const auto plan = plan_branch(temp.path, std::chrono::seconds(1), {});
  REQUIRE(plan.ok());
  CHECK(!plan->same_future);
}

TEST_CASE("two runs have a common past as far as their metrics agree") {
  scratch temp;
  const auto write = [&](const char* name, const std::string& rows) {
    std::ofstream(temp.path / name) << "time,loss\n" << rows;
    return temp.path / name;
  };
  const auto a = write("a.csv", "0.0,1\n1.0,2\n2.0,3\n3.0,4\n4.0,5\n");
  const auto b = write("b.csv", "0.0,1\n1.0,2\n2.0,3\n3.0,9\n");
  const auto c = write("c.csv", "0.0,1\n1.0,7\n2.0,3\n3.0,4\n");
  const auto past = [&](const auto& x, const auto& y, int seconds) {
    auto out = compare_past(x, y, std::chrono::seconds(seconds));
    REQUIRE(out.ok());
    return *out;
  };
  CHECK(past(a, b, 3).rows == 3);
  CHECK(!past(a, b, 3).first);
  // The row before the moment may be written by an event after it.
  CHECK(!past(a, b, 4).first);
  CHECK(past(a, b, 5).first == "3.0");
  CHECK(past(a, c, 3).first == "1.0");
  CHECK(!compare_past(a, temp.path / "none.csv", std::chrono::seconds(3)).ok());
}
