// kernels/optimizer: hand-computed steps, schedule, clipping, and LAMB against its formula.
#include "kernels/base/rng.hpp"
#include "kernels/convex_logistic.hpp"
#include "kernels/convex_quadratic.hpp"
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
  for (auto& x : v) x = static_cast<float>(random.normal());
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
  optimizer_config config{.kind = optimizer_kind::lamb,
                          .learning_rate = 0.1,
                          .beta2 = 0.95,
                          .epsilon = 1e-6,
                          .weight_decay = 0.01};
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
      if (ratio_max > 0) ratio = std::min(ratio, ratio_max);
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
      .kind = optimizer_kind::lamb, .learning_rate = 0.1, .beta2 = 0.95, .debias = false};
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
  step(config, 1, std::vector<float>{30, 40}, x, std::span<float>{});
  CHECK(x[0] == doctest::Approx(-0.6));
  CHECK(x[1] == doctest::Approx(-0.8));
  x = {0, 0};
  step(config, 1, std::vector<float>{0.3F, 0.4F}, x, std::span<float>{});
  CHECK(x[0] == -0.3F);
}

TEST_CASE("optimizer options out of range are refused by name") {
  CHECK(validate(optimizer_config{}).ok());
  CHECK(validate({.learning_rate = -1}).error().find("learning_rate") != std::string::npos);
  CHECK(validate({.learning_rate = NAN}).error().find("learning_rate") != std::string::npos);
  CHECK(validate({.beta1 = 1}).error().find("beta1") != std::string::npos);
  CHECK(validate({.warmup_steps = 10, .decay_steps = 10}).error().find("decay_steps") !=
        std::string::npos);
  for (auto kind : {optimizer_kind::sgd, optimizer_kind::adamw, optimizer_kind::lamb,
                    optimizer_kind::adamw8, optimizer_kind::lamb8})
    CHECK(parse_optimizer_kind(to_string(kind)).value() == kind);
  CHECK(parse_optimizer_kind("adam").error() ==
        "unknown optimizer 'adam'; there are sgd, adamw, lamb, adamw8 and lamb8");
}

namespace {

constexpr optimizer_kind coded[] = {optimizer_kind::adamw8, optimizer_kind::lamb8};

optimizer_config coded_config(optimizer_kind kind) {
  return {.kind = kind,
          .learning_rate = 0.01,
          .beta2 = 0.95,
          .epsilon = 1e-6,
          .weight_decay = 0.01,
          .clip_norm = 50};
}

/// Gradients over six decades, which differ from block to block. Some elements are always 0.
std::vector<float> uneven_gradient(rng& random, std::size_t n) {
  std::vector<float> out(n);
  for (std::size_t i = 0; i < n; ++i)
    out[i] =
        i % 17 == 0
            ? 0
            : static_cast<float>(random.normal() * std::exp(-static_cast<double>(i % 7000) / 500));
  return out;
}

} // namespace

TEST_CASE("in 8 bits the state is about a quarter, and a multiple of four bytes") {
  for (const auto kind : coded) {
    const auto config = coded_config(kind);
    CHECK(state_bytes(config, 0) == 0);
    CHECK(state_bytes(config, 1) == 12); // two scales, two codes, two zeros
    CHECK(state_bytes(config, 4097) == 2 * (8 + 4097) + 2);
    const double floats =
        static_cast<double>(state_bytes({.kind = optimizer_kind::lamb}, 17'850'000));
    CHECK(static_cast<double>(state_bytes(config, 17'850'000)) / floats ==
          doctest::Approx(0.25).epsilon(0.002));
  }
  CHECK(state_bytes({.kind = optimizer_kind::sgd, .momentum = 0.9}, 5) == 20);
  CHECK(state_bytes({.kind = optimizer_kind::adamw}, 5) == 40);
}

TEST_CASE("a step in 8 bits is, to the bit, decoding, a step in float, and encoding") {
  const std::size_t n = 3 * 4096 + 5;
  // Tensors that begin and end inside blocks.
  const std::vector<tensor_slot> tensors{
      {"a", 0, {100, 50}}, {"b", 5000, {4000}}, {"c", 9000, {static_cast<std::int64_t>(n) - 9000}}};
  for (const auto kind : coded)
    for (const bool layered : {false, true}) {
      CAPTURE(to_string(kind));
      const auto config = coded_config(kind);
      const auto layout =
          layered ? std::span<const tensor_slot>(tensors) : std::span<const tensor_slot>();
      rng random = stream(31, "moments in 8 bits");
      std::vector<float> x(n), reference_x;
      for (float& value : x) value = static_cast<float>(random.normal());
      reference_x = x;
      std::vector<std::byte> state(state_bytes(config, n)), reference_state = state;
      for (int t = 1; t <= 20; ++t) {
        const auto g = uneven_gradient(random, n);
        step(config, t, g, x, std::span(state), layout);
        step_8bit_reference(config, t, g, reference_x, reference_state, layout);
        REQUIRE(x == reference_x);
        REQUIRE(state == reference_state);
      }
    }
}

TEST_CASE("the first step in 8 bits is that in float, and later ones stay near it") {
  const std::size_t n = 10'000;
  for (const auto kind : coded) {
    CAPTURE(to_string(kind));
    const auto config = coded_config(kind);
    auto in_float = config;
    in_float.kind = kind == optimizer_kind::adamw8 ? optimizer_kind::adamw : optimizer_kind::lamb;
    rng random = stream(32, "moments in 8 bits");
    std::vector<float> x(n, 1), y(n, 1), moments(state_size(in_float, n));
    std::vector<std::byte> state(state_bytes(config, n));
    for (int t = 1; t <= 100; ++t) {
      std::vector<float> g(n);
      for (std::size_t i = 0; i < n; ++i) g[i] = static_cast<float>(0.3 + random.normal());
      step(config, t, g, x, std::span(state));
      step(in_float, t, g, y, std::span(moments));
      if (t == 1) REQUIRE(x == y);
    }
    double moved = 0, apart = 0;
    for (std::size_t i = 0; i < n; ++i) {
      moved += (y[i] - 1) * (y[i] - 1);
      apart += (x[i] - y[i]) * (x[i] - y[i]);
    }
    CHECK(moved > 0);
    CHECK(std::sqrt(apart / moved) < 0.03);
  }
}

TEST_CASE(
    "a gradient that is not finite spoils its blocks and no other, as far as a step can tell") {
  const std::size_t n = 2 * 4096;
  const optimizer_config config{.kind = optimizer_kind::adamw8, .learning_rate = 0.1};
  std::vector<float> x(n, 1), g(n, 1);
  g[3] = std::nanf("");
  std::vector<std::byte> state(state_bytes(config, n));
  step(config, 1, g, x, std::span(state));
  CHECK(std::isnan(x[3]));
  CHECK(x[4] == x[5000]);
  g[3] = 1;
  step(config, 2, g, x, std::span(state));
  CHECK(std::isnan(x[4])); // the scale of its block is lost
  CHECK(std::isfinite(x[5000]));
}

TEST_CASE("in 8 bits quadratic and logistic problems gain what they gain with float moments, "
          "within 2 %") {
  const convex_quadratic quadratic(300, 10, 5);
  const convex_logistic logistic(100, 4, 1e-3, 5);
  for (const convex_problem* problem : {static_cast<const convex_problem*>(&quadratic),
                                        static_cast<const convex_problem*>(&logistic)})
    for (const auto& [with_8, with_32] : {std::pair{optimizer_kind::adamw8, optimizer_kind::adamw},
                                          {optimizer_kind::lamb8, optimizer_kind::lamb}}) {
      CAPTURE(to_string(with_8));
      const auto loss = [problem](optimizer_kind which) {
        const optimizer_config config{.kind = which,
                                      .learning_rate = 0.03,
                                      .beta2 = 0.99,
                                      .epsilon = 1e-6,
                                      .warmup_steps = 10,
                                      .decay_steps = 500};
        return problem->held_out_loss(train_alone(*problem, config, 32, 500));
      };
      std::vector<float> start(problem->parameters());
      problem->initial(start);
      const double first = problem->held_out_loss(start), floats = loss(with_32),
                   bytes = loss(with_8);
      CHECK(floats < 0.9 * first);
      CHECK(std::fabs(bytes - floats) <= 0.02 * (first - floats));
    }
}

TEST_CASE("second moments that a codec made too small are raised to the bound of their first "
          "moments, and honest ones stay") {
  optimizer_config config{.learning_rate = 0.003};
  for (const double beta2 : {0.95, 0.999}) {
    config.beta2 = beta2;
    constexpr std::size_t n = 200;
    std::vector<float> parameters(n), state(state_size(config, n)), gradient(n);
    auto random = stream(5, "moments");
    for (std::int64_t t = 1; t <= 300; ++t) {
      // The moments nearest to the bound grow or fall by beta2 / beta1 a step. Others are of any
      // kind.
      for (std::size_t i = 0; i < n; ++i)
        gradient[i] = static_cast<float>(
            i < n / 2 ? 1e-3 * std::pow(config.beta1 / beta2, static_cast<double>(300 - t))
                      : random.normal());
      step(config, t, gradient, parameters, std::span(state));
      auto kept = state;
      CHECK_FALSE(mend_moments(config, n, state));
      CHECK(state == kept);
    }
    auto spoilt = state;
    for (std::size_t i = n; i < 2 * n; ++i) spoilt[i] = i % 2 == 0 ? -spoilt[i] : 0.0f;
    CHECK(mend_moments(config, n, spoilt));
    std::vector<float> zero(n), before = parameters;
    step(config, 301, zero, parameters, std::span(spoilt));
    for (std::size_t i = 0; i < n; ++i) {
      CHECK(std::isfinite(parameters[i]));
      // |m| is at most 1.165 sqrt(s) for the first beta2, 6.6 for the second, and the rate is
      // 0.003.
      CHECK(std::abs(parameters[i] - before[i]) < 0.003 * 7);
    }
  }
  SUBCASE("betas without a bound only make moments not negative") {
    config.beta2 = 0.5;
    std::vector<float> state{1.0f, -1.0f, -2.0f, 3.0f};
    CHECK(mend_moments(config, 2, state));
    CHECK(state == std::vector<float>{1.0f, -1.0f, 0.0f, 3.0f});
  }
}

TEST_CASE("an averaged state is copied only where a moment has to be raised") {
  const optimizer_config config{.kind = optimizer_kind::adamw};
  const payload honest{std::vector<float>{0.1F, 0.2F, 1, 1}},
      spoilt{std::vector<float>{0.1F, 0.2F, -1, 1}};
  CHECK(repaired_state(config, 2, honest).same_memory(honest));
  const auto repaired = repaired_state(config, 2, spoilt);
  CHECK(repaired.floats()[2] > 0);
  CHECK(repaired.floats()[3] == 1);
  CHECK(spoilt.floats()[2] == -1);
  const auto size_only = payload::size_only(16);
  CHECK(repaired_state(config, 2, size_only).same_memory(size_only));
  CHECK(repaired_state(config, 2, payload{}).empty());
  const payload coded{std::vector<std::byte>(state_bytes({.kind = optimizer_kind::lamb8}, 2))};
  CHECK(repaired_state({.kind = optimizer_kind::lamb8}, 2, coded).same_memory(coded));
}
