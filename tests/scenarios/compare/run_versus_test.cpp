#include "scenarios/compare/run_versus.hpp"
#include "scenarios/observe/run_directory.hpp"
#include "tests/scenarios/compare/helpers.hpp"

#include <cmath>
#include <string>
#include <vector>

using namespace shoal;
using namespace shoal::scenarios;
using namespace shoal::scenarios::test;

TEST_CASE("pairs by seed show a difference that two separate samples hide") {
  const std::vector<double> from{1, 2, 3, 4}, of{1.5, 2.4, 3.6, 4.5};
  const auto paired = difference_of(of, from, true), apart = difference_of(of, from, false);
  CHECK(paired.mean == doctest::Approx(0.5));
  CHECK(apart.mean == doctest::Approx(0.5));
  // The differences 0.5, 0.4, 0.6, 0.5 have the deviation 0.08165; t is 3.1824 for 3 degrees.
  REQUIRE(paired.half_width);
  CHECK(*paired.half_width == doctest::Approx(3.1824463 * 0.0816497 / 2).epsilon(1e-5));
  CHECK(paired.shown());
  CHECK(!apart.shown());
}

TEST_CASE("Welch's interval of two samples with different variances") {
  // Computed by hand: variances 2.5 and 62.5, five values each, 4.319 degrees, of which 4 count.
  const auto found = difference_of({1, 2, 3, 4, 5}, {20, 25, 30, 35, 40}, false);
  CHECK(found.mean == doctest::Approx(-27));
  REQUIRE(found.half_width);
  CHECK(*found.half_width == doctest::Approx(2.7764451 * std::sqrt(0.5 + 12.5)).epsilon(1e-6));
  CHECK(found.shown());
  CHECK(!difference_of({1}, {2, 3}, false).half_width);
  CHECK(!difference_of({1}, {2}, true).half_width);
  CHECK(difference_of({1, 1}, {2, 2}, false).shown());
  CHECK(!difference_of({2, 2}, {2, 2}, true).shown());
}
