#include "scenarios/schema/load.hpp"
#include "scenarios/schema/new_scenario.hpp"
#include "scenarios/workloads/workload.hpp"

#include <doctest/doctest.h>

#include <sstream>

using namespace shoal::scenarios;

namespace {
std::string complaints(const load_result& from) {
  std::string out;
  for (const auto* list : {&from.errors, &from.warnings})
    for (const diagnostic& what : *list) out += render(what);
  return out;
}
} // namespace

TEST_CASE("every new scenario is right, without a warning, and says what was asked for") {
  for (const std::uint64_t peers : {1, 2, 3, 4, 5, 37, 1000})
    for (const kind_definition* kind : workload_kinds())
      for (const auto churn : {churn_level::none, churn_level::some, churn_level::heavy})
        for (const std::uint64_t minutes : {1, 10, 100000}) {
          const auto* workload = workloads().find(kind->name);
          const std::string text = to_yaml({"mine", peers, workload, churn, minutes});
          INFO(text);
          const load_result loaded = load_text(text, "mine.yaml");
          CHECK(complaints(loaded) == "");
          REQUIRE(loaded.value);
          CHECK(expand_hosts(*loaded.value).size() == peers);
          CHECK(loaded.value->workload.kind == workload);
          CHECK(loaded.value->stop_time == std::chrono::minutes(minutes));
          CHECK((loaded.value->peers[0].churn == churn_options{}) == (churn == churn_level::none));
        }
}

TEST_CASE(
    "the largest new scenario and names that YAML would take for something else are right too") {
  for (const char* name : {"null", "true", "e5", "a.b-c_d"}) {
    REQUIRE(!name_error(name));
    const load_result loaded =
        load_text(to_yaml({name, 2, workloads().find("timing"), churn_level::none, 10}), "x.yaml");
    CHECK(complaints(loaded) == "");
    CHECK(loaded.value->name == name);
  }
  CHECK(complaints(load_text(
            to_yaml({"big", most_new_peers, workloads().find("timing"), churn_level::heavy, 1}),
            "big.yaml")) == "");
}

TEST_CASE("the comments of a new scenario, uncommented, are right as well") {
  std::string text = to_yaml({"mine", 8, workloads().find("timing"), churn_level::none, 10});
  for (const std::string comment : {"# churn:", "# faults:", "#   - ", "# expect:", "#   rounds"})
    for (std::size_t at; (at = text.find(comment)) != std::string::npos;) text.erase(at, 2);
  INFO(text);
  const load_result loaded = load_text(text, "mine.yaml");
  CHECK(complaints(loaded) == "");
  REQUIRE(loaded.value);
  CHECK(loaded.value->faults.size() == 2);
  CHECK(loaded.value->expect.size() == 1);
  CHECK(loaded.value->peers[0].churn != churn_options{});
}

TEST_CASE("only what was not given is asked for, and a wrong answer is asked for again") {
  std::istringstream in("twelve\n12\n\nheavy\n");
  std::ostringstream out;
  new_scenario_wishes wishes;
  wishes.minutes = 3;
  const auto made = ask("mine", wishes, in, out);
  REQUIRE(made.ok());
  CHECK(made->peers == 12);
  CHECK(made->workload == nullptr);
  CHECK(made->churn == churn_level::heavy);
  CHECK(made->minutes == 3);
  CHECK(out.str().find("'twelve' is no whole number") != std::string::npos);
  CHECK(out.str().find("minutes") == std::string::npos);
}

TEST_CASE("answers that end are an error") {
  std::istringstream in("12\n");
  std::ostringstream out;
  CHECK(!ask("mine", {}, in, out).ok());
}

TEST_CASE("counts, words and names that make no sense are refused") {
  for (const char* text : {"", "0", "-1", "1.5", "8 ", "1000001", "99999999999999999999"})
    CHECK(!parse_count(text, 1'000'000).ok());
  CHECK(*parse_count("1000000", 1'000'000) == 1'000'000);
  CHECK(parse_churn("lots").error() == "'lots' is none of none, some, heavy");
  CHECK(!parse_workload("llama").ok());
  for (const char* name : {"", "a b", "a:b", "-a", ".a", "7a", "ä", "a\nb", "a{b"})
    CHECK(name_error(name).has_value());
}
