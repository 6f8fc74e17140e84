// Contributions that own their values, for the tests of robust aggregators.
#pragma once

#include "kernels/base/rng.hpp"
#include "kernels/reduce_weighted_mean.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <vector>

namespace shoal::kernels::testing {

struct contributions {
  std::vector<std::vector<float>> values{};
  std::vector<double> weights{};

  void add(std::vector<float> of, double weight = 1) {
    values.push_back(std::move(of));
    weights.push_back(weight);
  }
  std::size_t count() const { return values.size(); }
  std::size_t size() const { return values.front().size(); }
  std::vector<weighted_values> view() const {
    std::vector<weighted_values> out;
    for (std::size_t i = 0; i < values.size(); ++i) out.push_back({weights[i], values[i]});
    return out;
  }
};

/// Contributions of `count` members about a common vector. The last `far` of them are 1000 times
/// as long and point elsewhere.
inline contributions random_contributions(rng& random, std::size_t count, std::size_t size,
                                          std::size_t far = 0) {
  contributions out;
  std::vector<float> common(size);
  for (auto& x : common) x = static_cast<float>(random.normal());
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<float> one(size);
    for (std::size_t j = 0; j < size; ++j)
      one[j] = i + far < count ? common[j] + static_cast<float>(0.3 * random.normal())
                               : static_cast<float>(-1000 * random.normal());
    out.add(std::move(one), static_cast<double>(1 + random.below(64)));
  }
  return out;
}

inline double distance(const std::vector<double>& a, const std::vector<double>& b) {
  double out = 0;
  for (std::size_t j = 0; j < a.size(); ++j) out += (a[j] - b[j]) * (a[j] - b[j]);
  return std::sqrt(out);
}

inline void check_near(const std::vector<double>& got, const std::vector<double>& expected,
                       double error) {
  REQUIRE(got.size() == expected.size());
  for (std::size_t j = 0; j < got.size(); ++j) {
    CAPTURE(j);
    CHECK(std::abs(got[j] - expected[j]) <= error);
  }
}

} // namespace shoal::kernels::testing
