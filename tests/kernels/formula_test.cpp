// kernels/formula: arithmetic as text.
#include "kernels/formula.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace shoal;
using namespace shoal::kernels;

namespace {

const formula_values values{{"x", 3}, {"two_x", 6}, {"none", 0}};

double number(const char* formula) {
  const auto value = evaluate(formula, values);
  REQUIRE_MESSAGE(value.ok(), formula);
  return *value;
}

std::string refused(const std::string& formula) {
  const auto value = evaluate(formula, values);
  return value.ok() ? "nothing" : value.error();
}

} // namespace

TEST_CASE("formulas are computed as written") {
  CHECK(number("1 + 2*x - 4") == 3);
  CHECK(number(" 2*(1 + x) * 0.5 ") == 4);
  CHECK(number("12/2/x - 10 - 1") == -9);
  CHECK(number("two_x/x") == 2);
  CHECK(number("max(1, x, 2) + ceil(x/2)") == 5);
  CHECK(number("if(x, 1, 2) + if(none, 10, 20) + if(none - 1, 100, 200)") == 221);
}

TEST_CASE("a text that is no formula is refused with its place") {
  CHECK(refused("1 + y") == "formula '1 + y', at character 6: 'y' has no value");
  CHECK(refused("1 +") == "formula '1 +', at character 4: a value is missing");
  CHECK(refused("(1 + 2") == "formula '(1 + 2', at character 7: ')' is missing");
  CHECK(refused("1 2") == "formula '1 2', at character 3: an operator or the end is missing");
  CHECK(refused("ceil(1, 2)") ==
        "formula 'ceil(1, 2)', at character 11: there is no function 'ceil' of 2 values");
  CHECK(refused("-1") == "formula '-1', at character 1: a value is missing");
  CHECK(refused("") == "formula '', at character 1: a value is missing");
  CHECK(refused(std::string(100'000, '(')).find("nested too deeply") != std::string::npos);
}
