// Programs of a scenario file: the registry, and how a section chooses one of them.
#include "scenarios/programs/averaging_study.hpp"
#include "scenarios/programs/program.hpp"
#include "scenarios/schema/load.hpp"
#include "tests/support/aborts.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace shoal;
using namespace shoal::scenarios;

namespace {

constexpr const char* study = "name: s\nseed: 3\naveraging_study: {peers: 9, rounds: 20}\n";

bool says(const load_result& loaded, const std::string& message, const std::string& note = {}) {
  return std::any_of(loaded.errors.begin(), loaded.errors.end(), [&](const diagnostic& each) {
    return each.message == message &&
           (note.empty() ||
            std::find(each.notes.begin(), each.notes.end(), note) != each.notes.end());
  });
}

} // namespace

TEST_CASE("programs are found by name, and training is the default") {
  CHECK(programs().names() == std::vector<std::string>{"training", "averaging_study", "inference",
                                                       "experts", "pipeline", "staleness_study"});
  CHECK(programs().find("averaging_studies") == nullptr);
  CHECK(scenario{}.program.name() == "training");
  CHECK(scenario{}.program.definition().on_runner());
  CHECK_FALSE(programs().find("averaging_study")->on_runner());
}

TEST_CASE("a second program of the same name is refused") {
  CHECK(shoal::testing::aborts([] { programs().add(*programs().find("averaging_study")); }));
  CHECK_FALSE(shoal::testing::aborts([] {
    auto other = *programs().find("averaging_study");
    other.name = "other_study";
    programs().add(other);
  }));
}

TEST_CASE("the section of a file chooses its program, and the resolved file has no other section") {
  const auto loaded = load_text(study, "s.yaml");
  REQUIRE(loaded.value);
  CHECK(loaded.value->program.name() == "averaging_study");
  const auto& options = loaded.value->program.as<averaging_study>();
  CHECK(options.peers == 9);
  CHECK(options.grid == kernels::grid{3, 2});
  const auto text = to_yaml(*loaded.value);
  CHECK(text.starts_with("name: s\nseed: 3\naveraging_study:\n  strategies: [moshpit]\n"));
  CHECK(text.find("stop_time") == std::string::npos);
  CHECK(text.find("at_least") == std::string::npos);
  const auto again = load_text(text, "s.yaml");
  REQUIRE(again.value);
  CHECK(*again.value == *loaded.value);
}

TEST_CASE("a misspelt program is asked for by its name") {
  CHECK(says(load_text("averaging_studdy: {peers: 9}\n", "s.yaml"),
             "unknown key 'averaging_studdy'", "did you mean 'averaging_study'?"));
}

TEST_CASE("a section that the program does not read is refused with the reason") {
  CHECK(says(load_text(std::string(study) + "faults: []\n", "s.yaml"),
             "'faults' beside 'averaging_study': a study only averages, and says everything in its "
             "own section"));
}

TEST_CASE("an unknown strategy of averaging is refused, also in an expectation") {
  const auto loaded = load_text("averaging_study:\n  strategies: [gosip]\n  peers: 9\n"
                                "  expect: [{strategy: al-reduce}]\n",
                                "s.yaml");
  const std::string all = " is not one of moshpit, random-groups, all-reduce, parameter-server, "
                          "gossip, push-sum";
  CHECK(says(loaded, "averaging_study.strategies.0: 'gosip'" + all, "did you mean 'gossip'?"));
  CHECK(says(loaded, "averaging_study.expect.0.strategy: 'al-reduce'" + all,
             "did you mean 'all-reduce'?"));
}

TEST_CASE("--set changes an option of the program") {
  const std::vector<std::string> sets{"averaging_study.strategies=[gossip, push-sum]",
                                      "averaging_study.failures=0.1"};
  const auto loaded = load_text(study, "s.yaml", sets);
  REQUIRE(loaded.value);
  const auto& options = loaded.value->program.as<averaging_study>();
  CHECK(options.strategies == std::vector<std::string>{"gossip", "push-sum"});
  CHECK(options.failures == std::vector<double>{0.1});
}
