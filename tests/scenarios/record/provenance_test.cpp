#include "scenarios/record/provenance.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <vector>

using namespace shoal;
using namespace shoal::scenarios;

TEST_CASE("the provenance in run.yaml reads back") {
  for (const auto& what :
       {provenance{"0.1.0", "9f", std::chrono::seconds(90), true, "9f2c28a-dirty"},
        provenance{"1.0", "", {}, false},
        provenance{"1.0", "", {}, false, "", "lab-3", 1'790'000'000'123'456'789},
        provenance{"1.0",
                   "",
                   {},
                   false,
                   "",
                   "lab-3",
                   1,
                   "lab",
                   "[::1]:7000",
                   "a:1 b:2",
                   "shoal node \\s.yaml --set 'name=\"x\"'",
                   true}}) {
    const auto back = provenance_of(parse_document("seed: 1" + to_yaml(what)));
    REQUIRE(back.ok());
    CHECK(*back == what);
  }
}

TEST_CASE("the branches of a run read back, to the nanosecond") {
  provenance what{"1.0", "", {}, false};
  what.branches = {{duration(1), 7},
                   {std::chrono::minutes(12), 18446744073709551615u},
                   {std::chrono::minutes(12) + duration(123'456'789), 0}};
  const auto back = provenance_of(parse_document("seed: 1" + to_yaml(what)));
  REQUIRE(back.ok());
  CHECK(*back == what);
  CHECK(to_text(std::vector<run_branch>{{std::chrono::seconds(90), 7}}) == "90s 7");
  for (const char* text : {"12min", "12 7", "12min x", "12min 7 8", "2min 1, 1min 2", "7, 8"})
    CHECK_MESSAGE(!parse_branches(text).ok(), text);
}

TEST_CASE("a run.yaml without x-run says nothing, and what another version added is ignored") {
  CHECK(*provenance_of(parse_document("seed: 1\n")) == provenance{});
  CHECK(provenance_of(parse_document("x-run: {shoal: 9.9, colour: blue, list: [1]}\n"))->shoal ==
        "9.9");
}

TEST_CASE("an x-run with values of the wrong kind is an error") {
  for (const char* text : {"x-run: 7\n", "x-run: {shoal: [1]}\n", "x-run: {until: soon}\n",
                           "x-run: {started_utc_ns: 1e9}\n", "x-run: {node: [a]}\n"})
    CHECK(!provenance_of(parse_document(text)).ok());
}

TEST_CASE("runs on other data are told from a run without data") {
  const provenance none{"1.0", "", {}, false}, some{"1.0", "9f", {}, false},
      other{"1.0", "a0", {}, false};
  CHECK(!data_differ(some, "A", some, "B"));
  CHECK(!data_differ(none, "A", none, "B"));
  CHECK(data_differ(some, "A", other, "B") ==
        "A and B had different training data (x-run.data_digest)");
  CHECK(data_differ(some, "A", none, "B") ==
        "A trained on data, B had none: their losses are no measure of each other");
  CHECK(data_differ(none, "A", some, "B") ==
        "B trained on data, A had none: their losses are no measure of each other");
}
