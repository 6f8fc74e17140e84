#include "scenarios/record/explain_case.hpp"
#include "tests/support/scratch_folder.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <string>

using namespace shoal;
using namespace shoal::scenarios;
using namespace std::chrono_literals;

namespace {

void write(const std::filesystem::path& file, const std::vector<case_event>& all) {
  std::ofstream out(file);
  for (const auto& each : all) out << to_json(each) << '\n';
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

} // namespace

TEST_CASE("explain: a case is told in the order of time, with what it led to") {
  const scratch_folder run;
  write(run.path / cases_file,
        {{2s, "mallory", case_what::accused, "p-0", "a vote without a signature", ""},
         {3s, "mallory", case_what::proven, "p-1", "two votes in one round", ""},
         {9s, "mallory", case_what::round, "", "epoch 3: failed, no_majority", ""},
         {10s, "eve", case_what::accused, "p-0", "a false part", ""}});
  const auto found = explain_case(run.path, 1);
  REQUIRE(found.ok());
  const auto text = to_text(*found);
  const auto said = text.find("a vote without a signature"), seen = text.find("both statements"),
             round = text.find("epoch 3: failed");
  CHECK((said < seen && seen < round && round != std::string::npos));
  CHECK(has(text, "It led to: 1 round that did not end well, 0 hosts that banned it."));
  CHECK(has(to_json(*found), "\"member\": \"mallory\""));
  const auto other = explain_case(run.path, 2);
  REQUIRE(other.ok());
  CHECK(has(to_text(*other), "There is no proof, so nobody banned it."));
}

TEST_CASE("explain: a case that is not there is answered with those that are") {
  const scratch_folder run;
  CHECK(has(explain_case(run.path, 1).error(), "no host accused another one in this run"));
  write(run.path / cases_file, {{2s, "eve", case_what::accused, "p-0", "a false part", ""}});
  CHECK(has(explain_case(run.path, 2).error(), "1: eve, accused of 'a false part'"));
  CHECK_FALSE(explain_case(run.path, 0).ok());
  std::ofstream(run.path / cases_file, std::ios::app) << "{\"at_ns\":1}\n";
  CHECK(has(explain_case(run.path, 1).error(), "line 2: not an event of a case"));
}

TEST_CASE("explain: a proof that does not hold is called forged") {
  const scratch_folder run;
  const std::string zeros128(128, '0'), zeros64(64, '0'), zeros32(32, '0'), ones32(32, '1');
  write(run.path / cases_file, {{2s, "mallory", case_what::banned, "p-0", "two votes in one round",
                                 "vote " + zeros64 + " " + zeros32 + " " + zeros32 + " " + ones32 +
                                     " " + zeros128 + " " + zeros128 + " swarm " + zeros64}});
  const auto found = explain_case(run.path, 1);
  REQUIRE(found.ok());
  CHECK(has(found->checked, "FORGED"));
  CHECK(found->statements.size() == 2);
}
