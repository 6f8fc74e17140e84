#include "scenarios/compare/replay.hpp"
#include "scenarios/record/version.hpp"
#include "tests/scenarios/compare/helpers.hpp"

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
