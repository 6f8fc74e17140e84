#include "kernels/base/stats.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

using namespace shoal;

TEST_CASE("a moving average starts at its first value") {
  ema average(0.1);
  CHECK(average.empty());
  CHECK(average.value() == 0);
  average.add(5);
  CHECK(average.value() == doctest::Approx(5).epsilon(1e-14));
  average.add(5);
  CHECK(average.value() == doctest::Approx(5).epsilon(1e-14));
  CHECK(average.count() == 2);
}

TEST_CASE("a moving average follows its formula") {
  const double alpha = 0.25;
  const std::vector<double> values = {3, -1, 4, 1, -5, 9};
  ema average(alpha);
  for (const double value : values) average.add(value);
  double sum = 0;
  for (std::size_t j = 0; j < values.size(); ++j)
    sum += alpha * std::pow(1 - alpha, static_cast<double>(values.size() - 1 - j)) * values[j];
  CHECK(average.value() == doctest::Approx(sum / (1 - std::pow(1 - alpha, 6))).epsilon(1e-13));

  ema last(1);
  for (const double value : values) last.add(value);
  CHECK(last.value() == 9);
}

TEST_CASE("quantiles interpolate between order statistics") {
  const std::vector<double> values = {40, 10, 30, 20};
  CHECK(quantile(values, 0) == 10);
  CHECK(quantile(values, 1) == 40);
  CHECK(median(values) == 25);
  CHECK(quantile(values, 0.1) == doctest::Approx(13));
  CHECK(quantile(std::vector<double>{7}, 0.3) == 7);
  CHECK(median(std::vector<double>{3, 1, 2}) == 2);
}

TEST_CASE("quantiles put infinities and NaN at the end") {
  const double inf = std::numeric_limits<double>::infinity();
  CHECK(median(std::vector<double>{inf, 1, 2}) == 2);
  CHECK(quantile(std::vector<double>{std::nan(""), 1, std::nan(""), 2, 3}, 0.25) == 2);
}

TEST_CASE("mean and variance are those of the population") {
  const std::vector<double> values = {1e9 + 4, 1e9 + 7, 1e9 + 13, 1e9 + 16};
  CHECK(mean(values) == 1e9 + 10);
  CHECK(variance(values) == 22.5);
  CHECK(variance(std::vector<double>{3}) == 0);
  CHECK(std::isnan(mean({})));
  CHECK(std::isnan(variance({})));
}
