#include "actors/averaging/guard_products.hpp"
#include "kernels/base/rng.hpp"
#include "kernels/reduce_weighted_mean.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

using namespace shoal;
using namespace shoal::actors;

namespace {

digest random_number(std::uint8_t which) {
  digest out;
  out.bytes.fill(which);
  return out;
}

/// A part of a round whose mean is correct, until a test changes it.
struct part_of_round {
  std::vector<std::vector<float>> inputs;
  std::vector<double> weights;
  std::vector<float> result;
  std::size_t first, count;
  part_layout layout;

  part_of_round(std::uint64_t seed, std::size_t senders, std::size_t values)
      : first(values / 3), count(values - first),
        layout({0, values / 3, values}, 64, /*size_only=*/false) {
    auto draws = stream(seed, "guard_products");
    for (std::size_t i = 0; i < senders; ++i) {
      auto& one = inputs.emplace_back(values);
      for (auto& x : one) x = static_cast<float>(draws.normal() * (1 + double(i)));
      weights.push_back(static_cast<double>(1 + draws.below(500)));
    }
    std::vector<kernels::weighted_values> all;
    for (std::size_t i = 0; i < senders; ++i) all.push_back({weights[i], inputs[i]});
    result.resize(values);
    REQUIRE(kernels::weighted_mean(all, result) == senders);
  }

  part_products products(std::uint8_t random, clipping clip = {}) const {
    std::vector<std::uint32_t> all(inputs.size());
    std::iota(all.begin(), all.end(), 0u);
    return {
        layout, 1, random_number(random), payload{result}, std::vector(layout.grid(1).count(), all),
        clip};
  }
  part_product product(const part_products& by, std::uint32_t i) const {
    const payload own{inputs[i]};
    return by.of(i, static_cast<std::uint64_t>(weights[i]),
                 [&](std::uint32_t k) { return layout.slice(own, 1, k); });
  }
  /// |sum of the products| over the tolerance.
  double excess(std::uint8_t random) const {
    const auto by = products(random);
    double sum = 0;
    std::vector<double> norms;
    for (std::uint32_t i = 0; i < inputs.size(); ++i) {
      const auto one = product(by, i);
      sum += weights[i] * one.product;
      norms.push_back(one.norm);
    }
    return std::abs(sum) / by.tolerance(weights, norms);
  }
};

} // namespace

TEST_CASE("the products of a correct mean make zero, within the tolerance, for 2,000 rounds") {
  double most = 0;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    const part_of_round round(seed, 2 + seed % 15, 3 + seed % 97);
    most = std::max(most, round.excess(static_cast<std::uint8_t>(seed)));
  }
  CHECK(most < 1);
  // The bound is for the worst case of each rounding, and still not far away.
  CHECK(most > 0.02);
}

TEST_CASE("a result that is a hundredth off is found in every one of 500 rounds") {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    CAPTURE(seed);
    part_of_round round(seed, 7, 900);
    for (std::size_t k = round.first; k < round.result.size(); ++k)
      round.result[k] += 1e-2f * (k % 2 == 0 ? 1.f : -1.f);
    CHECK(round.excess(1) > 1);
  }
}

TEST_CASE("a change of one value is found, and two equal changes do not hide each other") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    part_of_round round(seed, 5, 300);
    round.result[round.first + 3] += 0.1f;
    CHECK(round.excess(2) > 1);
    round.result[round.first + 40] -= 0.1f;
    CHECK(round.excess(2) > 1);
  }
}

TEST_CASE("a product and its norm are those of the formula, and honest ones are the same") {
  const part_of_round round(5, 4, 500);
  const auto by = round.products(9), again = round.products(9), other = round.products(10);
  double square = 0;
  for (std::size_t k = round.first; k < round.result.size(); ++k) {
    const double d = double{round.inputs[2][k]} - double{round.result[k]};
    square += d * d;
  }
  const auto one = round.product(by, 2);
  CHECK(one.norm == doctest::Approx(std::sqrt(square)).epsilon(1e-12));
  // The direction has about unit length, so a product is far below the norm.
  CHECK(std::abs(one.product) < one.norm);
  CHECK(round.product(again, 2).product == one.product);
  CHECK(same_product(one, round.product(again, 2)));
  CHECK(!same_product(one, round.product(other, 2)));
  CHECK(!same_product({one.product * (1 + 1e-6) + 1e-6 * one.norm, one.norm}, one));
  CHECK(!same_product({one.product, one.norm * 1.001}, one));
  CHECK(!same_product({std::numeric_limits<double>::quiet_NaN(), one.norm}, one));
}

TEST_CASE("clipping bounds a product, and leaves the norm") {
  const part_of_round round(6, 4, 500);
  clipping clip{true, 1e-3, 1, 500};
  const auto free = round.product(round.products(3), 1);
  const auto clipped = round.product(round.products(3, clip), 1);
  CHECK(clipped.norm == free.norm);
  // Each chunk's difference has the length of its radius, and the direction at most sqrt(3).
  const auto chunks = round.layout.grid(1).count();
  CHECK(std::abs(clipped.product) <=
        std::sqrt(3.0) * chunks * clip.radius_of(16, static_cast<std::uint64_t>(round.weights[1])));
  // The root of the part of the values, and of the samples.
  CHECK(clip.radius_of(125, 4) == doctest::Approx(1e-3 * 0.5 * 0.5));
  CHECK(std::isinf(clipping{}.radius_of(125, 4)));
}
