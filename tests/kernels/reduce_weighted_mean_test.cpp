#include "kernels/base/rng.hpp"
#include "kernels/reduce_weighted_mean.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

using namespace shoal;
using namespace shoal::kernels;

namespace {

std::vector<float> random_values(rng& random, std::size_t n) {
  std::vector<float> out(n);
  for (float& x : out) x = static_cast<float>(random.normal() * std::exp(random.uniform(-8, 8)));
  return out;
}

/// Contributions that own their values.
struct contributions {
  std::vector<std::vector<float>> values;
  std::vector<double> weights;

  void add(double weight, std::vector<float> of) {
    weights.push_back(weight);
    values.push_back(std::move(of));
  }
  std::vector<weighted_values> view() const {
    std::vector<weighted_values> out;
    for (std::size_t i = 0; i < values.size(); ++i) out.push_back({weights[i], values[i]});
    return out;
  }
  /// Requires: finite values.
  std::vector<float> mean() const {
    std::vector<float> out(values.front().size());
    REQUIRE(weighted_mean(view(), out) == values.size());
    return out;
  }
};

const float inf = std::numeric_limits<float>::infinity();

} // namespace

TEST_CASE("the weighted mean weighs by samples, not by peers") {
  contributions given;
  given.add(3, {1, -4});
  given.add(1, {5, 0});
  CHECK(given.mean() == std::vector<float>{2, -3});
}

TEST_CASE("the weighted mean stays within its error bound of the reference") {
  rng random = stream(5, "mean");
  for (const std::size_t size : {1, 7, 64, 65, 1000, 1023, 1024, 1025, 4099})
    for (const std::size_t peers : {1, 2, 4, 5, 7, 64}) {
      CAPTURE(size);
      CAPTURE(peers);
      contributions given;
      for (std::size_t i = 0; i < peers; ++i) {
        const double weight = random.below(2) == 0 ? static_cast<double>(1 + random.below(4096))
                                                   : random.uniform(0.01, 10);
        given.add(weight, random_values(random, size));
      }
      const auto view = given.view();
      const auto got = given.mean();
      const auto expected = weighted_mean_reference(view);
      for (std::size_t j = 0; j < size; ++j) {
        long double sum = 0, magnitude = 0, weights = 0;
        for (const auto& input : view) {
          sum += static_cast<long double>(input.weight) * input.values[j];
          magnitude += static_cast<long double>(input.weight) * std::fabs(input.values[j]);
          weights += input.weight;
        }
        const long double bound =
            0x1p-24L * std::fabs(sum / weights) +
            (static_cast<long double>(peers) + 2) * 0x1p-53L * magnitude / weights;
        REQUIRE(std::fabs(got[j] - sum / weights) <= bound);
        REQUIRE(got[j] == doctest::Approx(expected[j]).epsilon(1e-6));
      }
    }
}

TEST_CASE("unequal peers give the gradient of one large batch") {
  // The gradient of a linear model with squared loss, per sample: (w . x - y) x.
  constexpr std::size_t parameters = 257, samples = 600;
  rng random = stream(6, "batch");
  std::vector<std::vector<float>> gradients(samples);
  for (auto& gradient : gradients) gradient = random_values(random, parameters);
  std::vector<double> batch(parameters);
  for (const auto& gradient : gradients)
    for (std::size_t j = 0; j < parameters; ++j) batch[j] += gradient[j] / double{samples};

  contributions by_samples, by_peers;
  std::size_t begin = 0;
  for (const std::size_t count : {1, 64, 335, 200}) {
    std::vector<float> own(parameters);
    for (std::size_t j = 0; j < parameters; ++j) {
      double sum = 0;
      for (std::size_t i = begin; i < begin + count; ++i) sum += gradients[i][j];
      own[j] = static_cast<float>(sum / static_cast<double>(count));
    }
    begin += count;
    by_samples.add(static_cast<double>(count), own);
    by_peers.add(1, own);
  }
  REQUIRE(begin == samples);
  const auto distance = [&](const std::vector<float>& got) {
    double difference = 0, norm = 0;
    for (std::size_t j = 0; j < parameters; ++j) {
      difference += (got[j] - batch[j]) * (got[j] - batch[j]);
      norm += batch[j] * batch[j];
    }
    return std::sqrt(difference / norm);
  };
  CHECK(distance(by_samples.mean()) < 1e-6);
  CHECK(distance(by_peers.mean()) > 1e-2); // the wrong denominator shows
}

TEST_CASE(
    "the weighted mean names the first input with a value that is not finite, wherever it stands") {
  for (const std::size_t size : {1, 7, 64, 67, 1025})
    for (std::size_t at = 0; at<size; at += size> 100 ? 97 : 1)
      for (const std::size_t bad : {0, 1, 4}) {
        contributions given;
        for (std::size_t i = 0; i < 5; ++i)
          given.add(1 + static_cast<double>(i), std::vector<float>(size, 1));
        given.values[bad][at] = at % 2 == 0 ? std::nanf("") : -inf;
        given.values[4][at] = inf; // values that could cancel do not
        std::vector<float> out(size);
        REQUIRE(weighted_mean(given.view(), out) == bad);
      }
  CHECK(all_finite(std::vector<float>{0, -1e38F, 1e-45F}));
  CHECK(!all_finite(std::vector<float>{0, inf}));
  CHECK(!all_finite(std::vector<float>{std::nanf(""), 0}));
}

TEST_CASE("the largest floats and weights do not overflow the mean") {
  const float most = std::numeric_limits<float>::max();
  contributions given;
  for (int i = 0; i < 100; ++i) given.add(largest_weight, {most, -most});
  CHECK(given.mean() == std::vector<float>{most, -most});
}

TEST_CASE("the same order of contributions gives the same bits, however they lie in memory") {
  rng random = stream(7, "order");
  const std::size_t size = 1003;
  contributions given, shifted;
  std::vector<weighted_values> view;
  for (int i = 0; i < 33; ++i) {
    const auto values = random_values(random, size);
    std::vector<float> other(size + 3);
    std::copy(values.begin(), values.end(), other.begin() + 3);
    const double weight = random.uniform(0.1, 100);
    given.add(weight, values);
    shifted.add(weight, std::move(other));
  }
  for (std::size_t i = 0; i < shifted.values.size(); ++i)
    view.push_back({shifted.weights[i], std::span(std::as_const(shifted.values[i])).subspan(3)});
  std::vector<float> out(size);
  REQUIRE(weighted_mean(view, out) == view.size());
  CHECK(out == given.mean());
}

TEST_CASE("an empty part has an empty mean") {
  contributions given;
  given.add(3, {});
  CHECK(given.mean().empty());
}
