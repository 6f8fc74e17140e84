#include "kernels/closed_network.hpp"

#include <doctest/doctest.h>

#include <vector>

using namespace shoal;
using kernels::closed_network_rate;
using kernels::queue_class;

TEST_CASE("one job alone never waits in a closed network") {
  const std::vector<queue_class> stations{{0.5, 2}, {0.25, 4}};
  CHECK(closed_network_rate(1, 2, stations) == doctest::Approx(1 / 4.0));
  CHECK(closed_network_rate(1, 2, {}) == doctest::Approx(0.5));
}

TEST_CASE("many jobs keep the slowest station of a closed network busy") {
  const std::vector<queue_class> stations{{0.5, 1}, {0.2, 3}};
  CHECK(closed_network_rate(200, 1, stations) == doctest::Approx(2));
  CHECK(closed_network_rate(1'000'000, 1, stations) == doctest::Approx(2));
}

TEST_CASE("the rate of a closed network grows with its jobs and stays below both bounds") {
  const std::vector<queue_class> stations{{0.1, 4}, {0.06, 12}};
  double before = 0;
  for (std::uint64_t jobs = 1; jobs <= 64; ++jobs) {
    const double rate = closed_network_rate(jobs, 0.8, stations);
    CHECK(rate >= before);
    CHECK(rate <= 10 * (1 + 1e-12));
    CHECK(rate <= static_cast<double>(jobs) / (0.8 + 0.4 + 0.72) * (1 + 1e-12));
    before = rate;
  }
  CHECK(before == doctest::Approx(10));
}

TEST_CASE("jobs without a station go round as fast as the delay lets them") {
  CHECK(closed_network_rate(10, 0.5, {}) == doctest::Approx(20));
}
