#include "kernels/base/rng.hpp"
#include "kernels/reduce_weighted_mean.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

using namespace shoal;
using namespace shoal::kernels;

namespace {

std::vector<float> random_values(rng& random, std::size_t n) {
  std::vector<float> out(n);
  for (float& x : out)
    x = static_cast<float>(random.normal() * std::exp(random.uniform(-8, 8)));
  return out;
}

const float inf = std::numeric_limits<float>::infinity();

} // namespace

TEST_CASE("the weighted mean weighs by samples, not by peers") {
  weighted_mean_reducer mean(2);
  CHECK(mean.add(9, 3, std::vector<float>{1, -4}).ok());
  CHECK(mean.add(4, 1, std::vector<float>{5, 0}).ok());
  CHECK(mean.finish().value() == std::vector<float>{2, -3});
  CHECK(mean.total_weight() == 4);
  CHECK(mean.senders() == std::vector<std::uint32_t>{9, 4});
  CHECK(mean.contributions()[0] == contribution{9, 3});
  CHECK(mean.contributions()[1] == contribution{4, 1});
}

TEST_CASE("the weighted mean stays within its error bound of the reference") {
  rng random = stream(5, "mean");
  for (const std::size_t size : {1, 7, 64, 65, 1000, 4099})
    for (const std::size_t peers : {1, 2, 7, 64}) {
      CAPTURE(size);
      CAPTURE(peers);
      std::vector<std::vector<float>> inputs;
      std::vector<weighted_values> view;
      weighted_mean_reducer mean(size);
      for (std::size_t i = 0; i < peers; ++i) {
        inputs.push_back(random_values(random, size));
        const double weight = random.below(2) == 0 ? static_cast<double>(1 + random.below(4096))
                                                   : random.uniform(0.01, 10);
        REQUIRE(mean.add(static_cast<std::uint32_t>(i), weight, inputs.back()).ok());
        view.push_back({weight, {}});
      }
      for (std::size_t i = 0; i < peers; ++i)
        view[i].values = inputs[i];
      const auto got = mean.finish().value();
      const auto expected = weighted_mean_reference(view);
      REQUIRE(got.size() == size);
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
  for (auto& gradient : gradients)
    gradient = random_values(random, parameters);
  std::vector<double> batch(parameters);
  for (const auto& gradient : gradients)
    for (std::size_t j = 0; j < parameters; ++j)
      batch[j] += gradient[j] / double{samples};

  weighted_mean_reducer by_samples(parameters), by_peers(parameters);
  std::size_t begin = 0;
  std::uint32_t peer = 0;
  for (const std::size_t count : {1, 64, 335, 200}) {
    std::vector<float> own(parameters);
    for (std::size_t j = 0; j < parameters; ++j) {
      double sum = 0;
      for (std::size_t i = begin; i < begin + count; ++i)
        sum += gradients[i][j];
      own[j] = static_cast<float>(sum / static_cast<double>(count));
    }
    begin += count;
    REQUIRE(by_samples.add(peer, static_cast<double>(count), own).ok());
    REQUIRE(by_peers.add(peer++, 1, own).ok());
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
  CHECK(distance(by_samples.finish().value()) < 1e-6);
  CHECK(distance(by_peers.finish().value()) > 1e-2); // the wrong denominator shows
}

TEST_CASE("a refused contribution leaves no trace") {
  weighted_mean_reducer mean(2);
  const std::vector<float> good = {1, 2};
  REQUIRE(mean.add(1, 2, good).ok());

  for (const double weight :
       {0.0, -0.0, -1.0, std::nan(""), double{inf}, -double{inf}, 1e-310, 1e300})
    CHECK_FALSE(mean.add(2, weight, good).ok());
  for (const auto& values : {std::vector<float>{1, inf}, std::vector<float>{-inf, 1},
                             std::vector<float>{inf, -inf}, std::vector<float>{std::nanf(""), 1}})
    CHECK(mean.add(2, 1, values).error() == "sender 2 contributed a value that is not finite");
  CHECK(mean.add(2, 1, std::vector<float>{1}).error() ==
        "sender 2 contributed 1 values to a part of 2");
  CHECK_FALSE(mean.add(2, 1, std::vector<float>{1, 2, 3}).ok());
  CHECK_FALSE(mean.add(2, 1, {}).ok());
  CHECK(mean.add(1, 1, good).error() == "sender 1 has contributed already");

  CHECK(mean.total_weight() == 2);
  CHECK(mean.senders() == std::vector<std::uint32_t>{1});
  CHECK(mean.finish().value() == good);
  CHECK(mean.add(2, 2, std::vector<float>{3, 4}).ok()); // it may still come with something better
  CHECK(mean.finish().value() == std::vector<float>{2, 3});
}

TEST_CASE("a non-finite value is found wherever it stands") {
  for (const std::size_t size : {1, 7, 64, 67})
    for (std::size_t at = 0; at < size; ++at) {
      weighted_mean_reducer mean(size);
      std::vector<float> values(size, 1);
      values[at] = at % 2 == 0 ? std::nanf("") : -inf;
      REQUIRE_FALSE(mean.add(0, 1, values).ok());
    }
}

TEST_CASE("the largest floats and weights do not overflow the mean") {
  const float most = std::numeric_limits<float>::max();
  weighted_mean_reducer mean(2);
  for (std::uint32_t i = 0; i < 100; ++i)
    REQUIRE(
        mean.add(i, weighted_mean_reducer::largest_weight, std::vector<float>{most, -most}).ok());
  CHECK(mean.finish().value() == std::vector<float>{most, -most});
}

TEST_CASE("the same order of contributions gives the same bits") {
  rng random = stream(7, "order");
  const std::size_t size = 1003;
  weighted_mean_reducer first(size), second(size);
  for (std::uint32_t i = 0; i < 33; ++i) {
    const auto values = random_values(random, size);
    // Another alignment of the same values must not matter.
    std::vector<float> shifted(size + 3);
    std::copy(values.begin(), values.end(), shifted.begin() + 3);
    const double weight = random.uniform(0.1, 100);
    REQUIRE(first.add(i, weight, values).ok());
    REQUIRE(second.add(i, weight, std::span(shifted).subspan(3)).ok());
  }
  CHECK(first.finish().value() == second.finish().value());
  CHECK(first.finish().value() == first.finish().value());
}

TEST_CASE("nothing added has no mean, and an empty part has an empty one") {
  const std::unique_ptr<reducer> mean = std::make_unique<weighted_mean_reducer>(0);
  CHECK(mean->finish().error() == "the part has no contributions");
  CHECK(mean->total_weight() == 0);
  CHECK(mean->add(3, 1, {}).ok());
  CHECK(mean->finish().value().empty());
  CHECK(mean->size() == 0);
}

TEST_CASE("the mean in one pass gives the bits of the reducer, and finds what is not finite") {
  rng random = stream(6, "one pass");
  for (const std::size_t size : {0, 1, 7, 1023, 1024, 1025, 4099})
    for (const std::size_t peers : {1, 2, 5}) {
      CAPTURE(size);
      CAPTURE(peers);
      weighted_mean_reducer mean(size);
      std::vector<std::vector<float>> inputs;
      std::vector<weighted_values> view;
      for (std::size_t i = 0; i < peers; ++i)
        inputs.push_back(random_values(random, size));
      for (std::size_t i = 0; i < peers; ++i) {
        view.push_back({static_cast<double>(1 + random.below(4096)), inputs[i]});
        REQUIRE(mean.add(static_cast<std::uint32_t>(i), view[i].weight, inputs[i]).ok());
      }
      std::vector<float> got(size);
      CHECK(weighted_mean(view, got) == peers);
      CHECK(got == mean.finish().value());
      if (size == 0)
        continue;
      inputs.back()[random.below(size)] = random.below(2) == 0 ? -inf : std::nanf("");
      CHECK(weighted_mean(view, got) == peers - 1);
    }
  CHECK(all_finite(std::vector<float>{0, -1e38F, 1e-45F}));
  CHECK(!all_finite(std::vector<float>{0, inf}));
}
