// Keys and words that scenarios used formerly are read, with a warning that has the present name.
#include "tests/scenarios/schema/files.hpp"

#include <doctest/doctest.h>

using namespace shoal::scenarios;
using namespace shoal::scenarios::test;

namespace {

load_result with(const std::string& text, std::vector<std::string> sets = {}) {
  return load_text(text, "s.yaml", sets);
}

} // namespace

TEST_CASE("a former key is read with a warning that names the new key") {
  const auto old = with(small("rare_branches: 10%\n"));
  REQUIRE_MESSAGE(old.value, rendered(old));
  CHECK(old.value->failpoints == doctest::Approx(0.1));
  REQUIRE(old.warnings.size() == 1);
  CHECK(old.warnings[0].message == "rare_branches: the key is called 'failpoints' now");
  const auto now = with(small("failpoints: 10%\n"));
  REQUIRE(now.value);
  CHECK(now.warnings.empty());
  CHECK(*now.value == *old.value);
}

TEST_CASE("a former key is checked like the new one") {
  const auto wrong = with(small("rare_branches: 90%\n"));
  CHECK_FALSE(wrong.value);
  CHECK(rendered(wrong).find("failpoints: has to be at least 0 and at most 0.5") !=
        std::string::npos);
}

TEST_CASE("a key beside its former name is an error in a file") {
  const auto both = with(small("rare_branches: 10%\nfailpoints: 20%\n"));
  CHECK_FALSE(both.value);
  CHECK(rendered(both).find("both 'failpoints' and its former name 'rare_branches'") !=
        std::string::npos);
}

TEST_CASE("a setting counts more than the file, whichever name each of them uses") {
  const auto new_over_old = with(small("rare_branches: 10%\n"), {"failpoints=20%"});
  REQUIRE_MESSAGE(new_over_old.value, rendered(new_over_old));
  CHECK(new_over_old.value->failpoints == doctest::Approx(0.2));
  const auto old_over_new = with(small("failpoints: 10%\n"), {"rare_branches=20%"});
  REQUIRE_MESSAGE(old_over_new.value, rendered(old_over_new));
  CHECK(old_over_new.value->failpoints == doctest::Approx(0.2));
}

TEST_CASE("a former word of an option is read with a warning that has the new word") {
  const auto old = with(small(), {"averaging.split=single"});
  REQUIRE_MESSAGE(old.value, rendered(old));
  CHECK(old.value->averaging.split == shoal::actors::part_split::parameter_server);
  REQUIRE(old.warnings.size() == 1);
  CHECK(old.warnings[0].message == "averaging.split: 'single' is called 'parameter_server' now");
  CHECK(with(small(), {"averaging.split=parameter_server"}).warnings.empty());
}
