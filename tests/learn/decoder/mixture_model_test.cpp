// kernels/learn/mixture_model: the gradient agrees with differences, and the best experts are those
// with the largest logits.
#include "kernels/base/rng.hpp"
#include "kernels/learn/feed_forward.hpp"
#include "kernels/learn/image_ends.hpp"
#include "kernels/learn/mixture_model.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>

using namespace shoal;
using namespace shoal::learn;

namespace {

mixture_model model_of(std::size_t chosen, std::vector<std::uint32_t> grid) {
  constexpr std::size_t width = 6;
  auto net = std::make_shared<const mixture_network>(
      make_image_ends({.pixels = 12, .classes = 3, .width = width}),
      mixture_shape{.layers = 2, .grid = std::move(grid)});
  return {std::move(net), make_feed_forward(width), chosen};
}

std::vector<std::byte> some_images(std::size_t count) {
  auto random = stream(1, "images");
  std::vector<std::byte> out;
  for (std::size_t n = 0; n < count; ++n) {
    for (std::size_t i = 0; i < 12; ++i) out.push_back(std::byte(random.below(256)));
    out.push_back(std::byte(random.below(3)));
  }
  return out;
}

} // namespace

TEST_CASE("the gradient of a whole mixture agrees with differences of its loss") {
  // With all experts of a layer chosen, the loss has no jumps.
  const auto model = model_of(4, {2, 2});
  auto at = model.initial_parameters(1);
  REQUIRE(at.size() == model.parameter_count());
  const auto samples = some_images(5);
  std::vector<float> gradient(at.size());
  const auto loss = model.add_gradient(at, samples, gradient).value().loss;
  CHECK(loss == doctest::Approx(model.judge(at, samples).value().loss).epsilon(1e-6));
  auto random = stream(2, "direction");
  std::vector<float> along(at.size());
  for (int trial = 0; trial < 4; ++trial) {
    double expected = 0;
    for (std::size_t i = 0; i < along.size(); ++i) {
      along[i] = static_cast<float>(random.normal());
      expected += static_cast<double>(along[i]) * gradient[i];
    }
    constexpr float h = 1e-4F; // a larger one crosses kinks of the experts
    auto up = at, down = at;
    for (std::size_t i = 0; i < at.size(); ++i) up[i] += h * along[i], down[i] -= h * along[i];
    const double found =
        (model.judge(up, samples).value().loss - model.judge(down, samples).value().loss) / (2 * h);
    CHECK(found == doctest::Approx(expected).epsilon(0.05));
  }
}

TEST_CASE("each expert of a mixture has a number and a place of its own") {
  const auto model = model_of(1, {3, 2, 4});
  CHECK(model.experts_of_layer() == 24);
  CHECK(model.experts() == 48);
  std::set<kernels::expert_place> places;
  for (std::size_t n = 0; n < model.experts(); ++n) {
    const auto place = model.place_of(n);
    CHECK(model.number_of(model.layer_of(n), place) == n);
    if (n < 24) places.insert(place);
  }
  CHECK(places.size() == 24);
}

TEST_CASE("the best experts of a row are those with the largest logits") {
  const auto model = model_of(5, {3, 4});
  const auto& gate = model.net()->gate();
  auto random = stream(3, "scores");
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<float> scores(gate.keys());
    for (auto& each : scores) each = static_cast<float>(random.normal());
    const auto best = model.best_experts(scores);
    REQUIRE(best.size() == 5);
    const double least = gate.logit(scores, best.back());
    std::size_t better = 0;
    for (std::size_t n = 0; n < model.experts_of_layer(); ++n)
      better += gate.logit(scores, model.place_of(n)) > least ? 1 : 0;
    CHECK(better == 4);
    CHECK(std::is_sorted(best.begin(), best.end(), [&](const auto& a, const auto& b) {
      return gate.logit(scores, a) > gate.logit(scores, b);
    }));
  }
}
