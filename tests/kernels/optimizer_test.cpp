// kernels/optimizer: hand-computed steps, schedule, clipping, and LAMB against its formula.
#include "kernels/base/rng.hpp"
#include "kernels/optimizer.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

using namespace shoal;
using namespace shoal::kernels;

namespace {

std::vector<float> random_vector(std::size_t n, std::uint64_t seed) {
  auto random = stream(seed, "test_vector");
  std::vector<float> v(n);
  for (auto& x : v)
    x = static_cast<float>(random.normal());
  return v;
}

} // namespace

TEST_CASE("sgd keeps a velocity and decays weights") {
  const optimizer_config config{
      .kind = optimizer_kind::sgd, .learning_rate = 0.5, .momentum = 0.5, .weight_decay = 0.1};
  std::vector<float> x{1}, state(state_size(config, 1), 0.0F);
  step(config, 1, std::vector<float>{2}, x, state);
  CHECK(x[0] == doctest::Approx(1 - 0.5 * (2 + 0.1)));
  const double before = x[0];
  step(config, 2, std::vector<float>{2}, x, state);
  CHECK(state[0] == doctest::Approx(3));
  CHECK(x[0] == doctest::Approx(before - 0.5 * (3 + 0.1 * before)));
  CHECK(state_size({.kind = optimizer_kind::sgd}, 5) == 0);
  CHECK(state_size({.kind = optimizer_kind::lamb}, 5) == 10);
}

TEST_CASE("lamb scales each tensor's step to its weights, with clamps and debias") {
  optimizer_config config{
      .kind = optimizer_kind::lamb, .learning_rate = 0.1, .epsilon = 1e-6, .weight_decay = 0.01};
  const std::vector<tensor_slot> layout{{"a", 0, {2}}, {"b", 2, {3}}};
  const std::vector<float> g{1, -2, 0.5F, 0, 3}, start{3, 4, 10, 0, -10};
  auto direction = [&](std::size_t i, double) {
    const double m = 0.1 * g[i], s = 0.05 * g[i] * g[i];
    return m / (std::sqrt(s) + 1e-6) + 0.01 * start[i];
  };
  auto expect = [&](double debias, double clamp, double ratio_max) {
    auto x = start;
    std::vector<float> state(10, 0.0F);
    step(config, 1, g, x, state, layout);
    for (const auto& slot : layout) {
      double weights = 0, update = 0;
      for (std::size_t i = slot.offset; i < slot.offset + slot.size(); ++i) {
        weights += start[i] * start[i];
        update += std::pow(direction(i, debias), 2);
      }
      double ratio = std::min(std::sqrt(weights), clamp) / std::sqrt(update);
      if (ratio_max > 0)
        ratio = std::min(ratio, ratio_max);
      for (std::size_t i = slot.offset; i < slot.offset + slot.size(); ++i)
        CHECK(
            x[i] ==
            doctest::Approx(start[i] - 0.1 * debias * ratio * direction(i, debias)).epsilon(1e-5));
    }
  };
  const double debias = std::sqrt(1 - 0.95) / (1 - 0.9);
  expect(debias, 1e4, 0);
  config.debias = false;
  expect(1, 1e4, 0);
  config.weight_norm_clamp = 6;
  expect(1, 6, 0);
  config.trust_ratio_max = 1.5;
  expect(1, 6, 1.5);
}

TEST_CASE("lamb's layout matters and zero weights get a trust ratio of one") {
  const optimizer_config config{
      .kind = optimizer_kind::lamb, .learning_rate = 0.1, .debias = false};
  std::vector<float> zero{0, 0}, state(4, 0.0F);
  step(config, 1, std::vector<float>{1, 1}, zero, state);
  CHECK(zero[0] == doctest::Approx(-0.1 * 0.1 / std::sqrt(0.05)));
  const auto g = random_vector(6, 1);
  auto whole = random_vector(6, 2), parts = whole;
  std::vector<float> a(12, 0.0F), b(12, 0.0F);
  const std::vector<tensor_slot> layout{{"a", 0, {2}}, {"b", 2, {4}}};
  step(config, 1, g, whole, a);
  step(config, 1, g, parts, b, layout);
  CHECK(a == b);
  CHECK(whole != parts);
}

TEST_CASE("the rate warms up, decays and stays") {
  const optimizer_config config{
      .learning_rate = 1, .warmup_steps = 4, .decay_steps = 14, .final_rate_fraction = 0.2};
  CHECK(learning_rate_at(config, 1) == doctest::Approx(0.25));
  CHECK(learning_rate_at(config, 4) == doctest::Approx(1));
  CHECK(learning_rate_at(config, 5) == doctest::Approx(1));
  CHECK(learning_rate_at(config, 10) == doctest::Approx(0.6));
  CHECK(learning_rate_at(config, 15) == doctest::Approx(0.2));
  CHECK(learning_rate_at(config, 1000) == doctest::Approx(0.2));
  CHECK(learning_rate_at({.learning_rate = 0.3}, 77) == 0.3);
}

TEST_CASE("clipping scales long gradients and leaves short ones alone") {
  optimizer_config config{.kind = optimizer_kind::sgd, .learning_rate = 1, .clip_norm = 1};
  std::vector<float> x{0, 0};
  step(config, 1, std::vector<float>{30, 40}, x, {});
  CHECK(x[0] == doctest::Approx(-0.6));
  CHECK(x[1] == doctest::Approx(-0.8));
  x = {0, 0};
  step(config, 1, std::vector<float>{0.3F, 0.4F}, x, {});
  CHECK(x[0] == -0.3F);
}

TEST_CASE("optimizer options out of range are refused by name") {
  CHECK(validate(optimizer_config{}).ok());
  CHECK(validate({.learning_rate = -1}).error().find("learning_rate") != std::string::npos);
  CHECK(validate({.learning_rate = NAN}).error().find("learning_rate") != std::string::npos);
  CHECK(validate({.beta1 = 1}).error().find("beta1") != std::string::npos);
  CHECK(validate({.warmup_steps = 10, .decay_steps = 10}).error().find("decay_steps") !=
        std::string::npos);
  for (auto kind : {optimizer_kind::sgd, optimizer_kind::adamw, optimizer_kind::lamb})
    CHECK(parse_optimizer_kind(to_string(kind)).value() == kind);
  CHECK(parse_optimizer_kind("adam").error() ==
        "unknown optimizer 'adam'; there are sgd, adamw and lamb");
}
