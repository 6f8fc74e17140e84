#include "actors/experts/size_bound.hpp"

#include <doctest/doctest.h>

#include <vector>

using namespace shoal::actors;

TEST_CASE("the size of values is their root mean square") {
  CHECK(size_of_values({}) == 0);
  const std::vector<float> some{3, -4, 0, 0};
  CHECK(size_of_values(some) == doctest::Approx(2.5));
}

TEST_CASE("a size far above those of most other hosts is refused and one at the bound is not") {
  size_bound sizes(10);
  // Nobody knows at first what is usual.
  CHECK(sizes.accepts(1, 1000));
  CHECK(sizes.accepts(2, 1));
  CHECK(sizes.accepts(3, 2));
  CHECK(sizes.accepts(4, 3));
  // The other hosts of host 1 have 1, 2 and 3.
  CHECK_FALSE(sizes.accepts(1, 20.1));
  CHECK(sizes.accepts(1, 20));
  // A host's own sizes do not move its bound.
  for (int i = 0; i < 9; ++i) CHECK_FALSE(sizes.accepts(5, 1e6));
  CHECK(sizes.accepts(5, 0));
}

TEST_CASE("a bound of zero takes any size") {
  size_bound sizes(0);
  for (peer_id host = 1; host < 9; ++host) CHECK(sizes.accepts(host, 1));
  CHECK(sizes.accepts(9, 1e30));
}
