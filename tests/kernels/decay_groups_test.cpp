#include "kernels/base/rng.hpp"
#include "kernels/decay_groups.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

using namespace shoal;
using namespace shoal::kernels;

namespace {

const std::vector<tensor_slot> three{{"a.weight", 0, {3, 4}}, {"a.bias", 12, {4}}, {"b", 16, {5}}};

struct trained {
  std::vector<float> parameters;
  std::vector<std::byte> state;
};

template <class Step>
trained train(const optimizer_config& config, Step step_of) {
  auto random = stream(1, "groups");
  trained out{std::vector<float>(21), std::vector<std::byte>(state_bytes(config, 21))};
  for (auto& value : out.parameters) value = static_cast<float>(random.normal());
  std::vector<float> gradient(21);
  for (std::int64_t t = 1; t <= 5; ++t) {
    for (auto& value : gradient) value = static_cast<float>(random.normal());
    step_of(t, gradient, out);
  }
  return out;
}

bool all(std::string_view) {
  return true;
}
bool no_bias(std::string_view name) {
  return name.find("bias") == std::string_view::npos;
}

} // namespace

TEST_CASE("a step in groups that all decay is a plain step") {
  for (const auto kind : {optimizer_kind::sgd, optimizer_kind::adamw, optimizer_kind::lamb}) {
    optimizer_config config;
    config.kind = kind;
    config.momentum = 0.9;
    config.weight_decay = 0.1;
    config.learning_rate = 0.05;
    config.clip_norm = 1;
    const auto plain = train(config, [&](auto t, const auto& g, trained& of) {
      step(config, t, g, of.parameters, std::span(of.state), three);
    });
    const auto groups = train(config, [&](auto t, const auto& g, trained& of) {
      step_in_groups(config, t, g, of.parameters, of.state, three, all);
    });
    CHECK(plain.parameters == groups.parameters);
    CHECK(plain.state == groups.state);
  }
}

TEST_CASE("weight decay leaves a tensor alone that does not decay") {
  optimizer_config config;
  config.kind = optimizer_kind::lamb;
  config.learning_rate = 0.05;
  config.weight_decay = 0.1;
  const auto in_groups = [&](const optimizer_config& c, decays which) {
    return train(c,
                 [&](auto t, const auto& g, trained& of) {
                   step_in_groups(c, t, g, of.parameters, of.state, three, which);
                 })
        .parameters;
  };
  const auto some = in_groups(config, no_bias), every = in_groups(config, all);
  auto without = config;
  without.weight_decay = 0;
  const auto none = in_groups(without, all);
  for (std::size_t i = 0; i < 21; ++i) {
    const bool bias = i >= 12 && i < 16;
    CHECK(some[i] == (bias ? none[i] : every[i]));
    CHECK(every[i] != none[i]);
  }
}

TEST_CASE("a step of LAMB in groups has the published formula") {
  // One step from zero moments, in double precision: m = (1-b1) g, v = (1-b2) g^2.
  optimizer_config config;
  config.kind = optimizer_kind::lamb;
  config.learning_rate = 1.76e-3;
  config.beta2 = 0.999;
  config.epsilon = 1e-6;
  config.weight_decay = 0.01;
  std::vector<float> x{0.5F, -2, 1, 3}, g{0.1F, 0.2F, -0.3F, 0};
  const auto before = x;
  std::vector<std::byte> state(state_bytes(config, 4));
  const std::vector<tensor_slot> one{{"w", 0, {4}}};
  step_in_groups(config, 1, g, x, state, one, all);
  double weights = 0, updates = 0, u[4];
  for (std::size_t i = 0; i < 4; ++i) {
    const double m = 0.1 * double{g[i]}, v = 0.001 * double{g[i]} * double{g[i]};
    u[i] = m / (std::sqrt(v) + 1e-6) + 0.01 * double{before[i]};
    weights += double{before[i]} * double{before[i]};
    updates += u[i] * u[i];
  }
  const double r = std::sqrt(weights / updates), c = std::sqrt(1 - 0.999) / (1 - 0.9);
  for (std::size_t i = 0; i < 4; ++i)
    CHECK(x[i] == doctest::Approx(double{before[i]} - 1.76e-3 * c * r * u[i]).epsilon(1e-6));
}

TEST_CASE("tensors that do not decay make steps of adamw where LAMB does not adapt them") {
  optimizer_config config;
  config.kind = optimizer_kind::lamb;
  config.learning_rate = 0.05;
  config.weight_decay = 0.1;
  const auto in_groups = [&](const optimizer_config& c) {
    return train(c,
                 [&](auto t, const auto& g, trained& of) {
                   step_in_groups(c, t, g, of.parameters, of.state, three, no_bias);
                 })
        .parameters;
  };
  auto some = config, adam = config;
  some.adapt_undecayed = false;
  adam.kind = optimizer_kind::adamw;
  const auto adapted = in_groups(config), mixed = in_groups(some), moved = in_groups(adam);
  for (std::size_t i = 0; i < 21; ++i) {
    CAPTURE(i);
    const bool bias = i >= 12 && i < 16;
    CHECK(mixed[i] == (bias ? moved : adapted)[i]);
  }
}

TEST_CASE("a bias of 0 moves by the rate where LAMB does not adapt it, and hardly where it does") {
  const std::vector<tensor_slot> one{{"bias", 0, {4}}};
  const std::vector<float> gradient{1, -1, 2, -2};
  const auto after = [&](bool adapted) {
    optimizer_config config;
    config.kind = optimizer_kind::lamb;
    config.learning_rate = 0.01;
    config.adapt_undecayed = adapted;
    std::vector<float> bias(4);
    std::vector<std::byte> state(state_bytes(config, 4));
    for (std::int64_t t = 1; t <= 20; ++t)
      step_in_groups(config, t, gradient, bias, state, one, no_bias);
    return std::abs(bias[0]);
  };
  CHECK(after(false) == doctest::Approx(0.2).epsilon(0.01)); // 20 steps of the rate
  CHECK(after(true) < 0.013); // the first step, and 1 % of it in each
}
