#include "kernels/base/rng.hpp"
#include "kernels/squared_norm.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

using namespace shoal;
using namespace shoal::kernels;

TEST_CASE("the squared norm is that of a plain loop for all sizes and places in memory") {
  rng random(5);
  std::vector<float> values(4096 + 8);
  for (auto& each : values) each = static_cast<float>(random.uniform() - 0.5);
  for (std::size_t size = 0; size < 200; ++size)
    for (std::size_t begin = 0; begin < 8; ++begin) {
      const std::span<const float> shown(values.data() + begin, size);
      long double sum = 0;
      for (const auto each : shown) sum += static_cast<long double>(each) * each;
      REQUIRE(squared_norm(shown) == doctest::Approx(static_cast<double>(sum)).epsilon(1e-14));
    }
  const std::span<const float> here(values.data(), 4096);
  std::vector<float> there(values.begin(), values.begin() + 4096);
  CHECK(squared_norm(here) == squared_norm(there));
}

TEST_CASE("the squared norm of values that are no numbers is no number") {
  for (const std::size_t at : {0, 15, 16, 40}) {
    std::vector<float> values(41, 1);
    values[at] = std::numeric_limits<float>::quiet_NaN();
    CHECK(std::isnan(squared_norm(values)));
    values[at] = std::numeric_limits<float>::infinity();
    CHECK(std::isinf(squared_norm(values)));
    values[at] = std::numeric_limits<float>::max();
    CHECK(std::isfinite(squared_norm(values)));
  }
}
