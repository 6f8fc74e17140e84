// kernels/outer_optimizer: hand-computed steps, each formula against a plain reference in double,
// delayed Nesterov against Nesterov, and one local step against no local steps.
#include "kernels/base/rng.hpp"
#include "kernels/optimizer.hpp"
#include "kernels/outer_optimizer.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

using namespace shoal;
using namespace shoal::kernels;

namespace {

std::vector<float> normal_vector(rng& random, std::size_t n, double size = 1) {
  std::vector<float> out(n);
  for (auto& x : out) x = static_cast<float>(size * random.normal());
  return out;
}

/// The header's formulas, element by element in double, with the whole history kept.
class outer_reference {
public:
  outer_reference(const outer_optimizer_config& config, std::vector<float> start)
      : config_(config), x_(start.begin(), start.end()), v_(x_.size()) {}

  void step(const std::vector<float>& g) {
    history_.push_back(g);
    const auto t = static_cast<std::int64_t>(history_.size());
    const auto n = static_cast<double>(config_.delay), c = config_.activation;
    const double beta = config_.momentum, rate = config_.learning_rate;
    const bool full = t % config_.delay == 0;
    for (std::size_t i = 0; i < x_.size(); ++i) {
      if (full) {
        double mean = 0;
        for (std::int64_t k = t - config_.delay; k < t; ++k)
          mean += history_[static_cast<std::size_t>(k)][i] / n;
        v_[i] = beta * v_[i] + mean;
      }
      const double share = full ? 1 - c * n + c : c;
      x_[i] -= rate * (config_.nesterov ? g[i] / n + share * beta * v_[i] : v_[i]);
    }
  }

  double distance(const std::vector<float>& x) const {
    double most = 0;
    for (std::size_t i = 0; i < x.size(); ++i)
      most = std::max(most, std::fabs(x[i] - x_[i]) / (1 + std::fabs(x_[i])));
    return most;
  }

private:
  outer_optimizer_config config_;
  std::vector<double> x_, v_;
  std::vector<std::vector<float>> history_;
};

} // namespace

TEST_CASE("the outer optimizer makes the steps of torch.optim.SGD, computed by hand") {
  const std::vector<float> g{1};
  const auto two_steps = [&](outer_optimizer_config config) {
    std::vector<float> x{0}, state(outer_state_size(config, 1));
    outer_step(config, 1, g, x, state);
    const float first = x[0];
    outer_step(config, 2, g, x, state);
    return std::pair{first, x[0]};
  };
  SUBCASE("plain") {
    const auto [first, second] =
        two_steps({.learning_rate = 0.7, .momentum = 0.9, .nesterov = false});
    CHECK(first == doctest::Approx(-0.7));
    CHECK(second == doctest::Approx(-0.7 - 0.7 * 1.9));
  }
  SUBCASE("Nesterov") {
    const auto [first, second] = two_steps({.learning_rate = 0.7, .momentum = 0.9});
    CHECK(first == doctest::Approx(-0.7 * 1.9));
    CHECK(second == doctest::Approx(-0.7 * 1.9 - 0.7 * (1 + 0.9 * 1.9)));
  }
  SUBCASE("without momentum") {
    const auto [first, second] = two_steps({.learning_rate = 2, .momentum = 0});
    CHECK(first == -2);
    CHECK(second == -4);
  }
}

TEST_CASE("each kind of outer step follows its reference over many steps and sizes") {
  rng random = stream(1, "outer optimizer");
  for (const std::size_t n : {std::size_t{0}, std::size_t{1}, std::size_t{7}, std::size_t{1003}})
    for (const outer_optimizer_config& config :
         {outer_optimizer_config{.momentum = 0}, outer_optimizer_config{},
          outer_optimizer_config{.nesterov = false}, outer_optimizer_config{.delay = 4},
          outer_optimizer_config{.momentum = 0, .delay = 3},
          outer_optimizer_config{.delay = 4, .activation = 0.1},
          outer_optimizer_config{.delay = 3, .activation = 1.0 / 3}}) {
      CAPTURE(n);
      CAPTURE(config.delay);
      CAPTURE(config.activation);
      REQUIRE(validate(config).ok());
      auto x = normal_vector(random, n);
      outer_reference reference(config, x);
      std::vector<float> state(outer_state_size(config, n));
      for (std::int64_t t = 1; t <= 50; ++t) {
        const auto g = normal_vector(random, n, 0.1);
        outer_step(config, t, g, x, state);
        reference.step(g);
      }
      CHECK(reference.distance(x) < 1e-5);
    }
}

TEST_CASE("delayed Nesterov moves as far as Nesterov with the mean after each N pseudo-gradients") {
  rng random = stream(2, "outer optimizer");
  constexpr std::size_t n = 65;
  constexpr std::int64_t workers = 5;
  const outer_optimizer_config one{.learning_rate = 0.3, .momentum = 0.8};
  for (const double activation : {0.0, 0.07, 0.2}) {
    CAPTURE(activation);
    auto delayed = one;
    delayed.delay = workers;
    delayed.activation = activation;
    auto x = normal_vector(random, n), y = x;
    std::vector<float> state(2 * n), velocity(n);
    for (std::int64_t round = 0; round < 10; ++round) {
      std::vector<double> sum(n);
      for (std::int64_t w = 1; w <= workers; ++w) {
        const auto g = normal_vector(random, n);
        for (std::size_t i = 0; i < n; ++i) sum[i] += g[i];
        outer_step(delayed, round * workers + w, g, x, state);
      }
      std::vector<float> mean(n);
      for (std::size_t i = 0; i < n; ++i) mean[i] = static_cast<float>(sum[i] / workers);
      outer_step(one, round + 1, mean, y, velocity);
      // The momentum between is the old one, so the paths separate where it is active.
      if (activation == 0)
        for (std::size_t i = 0; i < n; ++i) REQUIRE(x[i] == doctest::Approx(y[i]).epsilon(1e-4));
    }
    for (std::size_t i = 0; i < n; ++i)
      CHECK(state[i] == doctest::Approx(velocity[i]).epsilon(1e-4));
  }
}

TEST_CASE(
    "the mean of the peers' outer steps is the outer step with the means, momentum included") {
  // So peers with different outer parameters may step alone and average afterwards.
  rng random = stream(4, "outer optimizer");
  constexpr std::size_t n = 65, peers = 4;
  for (const bool nesterov : {true, false}) {
    const outer_optimizer_config config{.nesterov = nesterov};
    std::vector<double> x_mean(n), v_mean(n), x_after(n), v_after(n), g_mean(n);
    const auto add = [](std::vector<double>& mean, const std::vector<float>& values) {
      for (std::size_t i = 0; i < n; ++i) mean[i] += values[i] / static_cast<double>(peers);
    };
    for (std::size_t p = 0; p < peers; ++p) {
      auto x = normal_vector(random, n), v = normal_vector(random, n);
      const auto g = normal_vector(random, n);
      add(x_mean, x), add(v_mean, v), add(g_mean, g);
      outer_step(config, 1, g, x, v);
      add(x_after, x), add(v_after, v);
    }
    std::vector<float> x(x_mean.begin(), x_mean.end()), v(v_mean.begin(), v_mean.end());
    outer_step(config, 1, std::vector<float>(g_mean.begin(), g_mean.end()), x, v);
    for (std::size_t i = 0; i < n; ++i) {
      REQUIRE(std::fabs(x[i] - x_after[i]) < 1e-6 * (1 + std::fabs(x[i])));
      REQUIRE(std::fabs(v[i] - v_after[i]) < 1e-6 * (1 + std::fabs(v[i])));
    }
  }
}

TEST_CASE("one local step and an outer rate of 1 are the plain step with the mean gradient") {
  rng random = stream(3, "outer optimizer");
  constexpr std::size_t n = 1003, peers = 4;
  const optimizer_config inner{.kind = optimizer_kind::sgd, .learning_rate = 0.05};
  const outer_optimizer_config outer{.learning_rate = 1, .momentum = 0};
  auto plain = normal_vector(random, n), x = plain;
  std::vector<float> none;
  for (std::int64_t t = 1; t <= 100; ++t) {
    std::vector<double> gradients(n), moved(n);
    for (std::size_t p = 0; p < peers; ++p) {
      const auto g = normal_vector(random, n);
      auto local = x;
      step(inner, t, g, local, std::span<float>(none));
      pseudo_gradient(x, local, local);
      for (std::size_t i = 0; i < n; ++i) {
        gradients[i] += g[i] / static_cast<double>(peers);
        moved[i] += local[i] / static_cast<double>(peers);
      }
    }
    const std::vector<float> mean(gradients.begin(), gradients.end());
    const std::vector<float> mean_moved(moved.begin(), moved.end());
    auto alone = x;
    step(inner, t, mean, alone, std::span<float>(none));
    outer_step(outer, t, mean_moved, x, none);
    for (std::size_t i = 0; i < n; ++i)
      REQUIRE(std::fabs(x[i] - alone[i]) <= 1e-6 * (1 + std::fabs(alone[i])));
    step(inner, t, mean, plain, std::span<float>(none));
  }
  for (std::size_t i = 0; i < n; ++i)
    CHECK(std::fabs(x[i] - plain[i]) <= 1e-5 * (1 + std::fabs(plain[i])));
}

TEST_CASE("a pseudo-gradient that is not finite spoils its element and no other") {
  for (const std::int64_t delay : {1, 2}) {
    const outer_optimizer_config config{.delay = delay};
    std::vector<float> x{1, 2}, state(outer_state_size(config, 2));
    const std::vector<float> g{std::numeric_limits<float>::quiet_NaN(), 0};
    outer_step(config, 1, g, x, state);
    CHECK(std::isnan(x[0]));
    CHECK(x[1] == 2);
  }
}

TEST_CASE("an outer optimizer is validated, and its state has the size of its momentum") {
  CHECK(validate(outer_optimizer_config{}).ok());
  CHECK(outer_state_size({.momentum = 0}, 5) == 0);
  CHECK(outer_state_size({}, 5) == 5);
  CHECK(outer_state_size({.delay = 2}, 5) == 10);
  const auto says = [](const outer_optimizer_config& config, const char* what) {
    const auto sound = validate(config);
    return !sound && sound.error().find(what) != std::string::npos;
  };
  CHECK(says({.learning_rate = -1}, "learning_rate"));
  CHECK(says({.learning_rate = std::nan("")}, "learning_rate"));
  CHECK(says({.momentum = 1}, "momentum"));
  CHECK(says({.momentum = std::nan("")}, "momentum"));
  CHECK(says({.delay = 0}, "delay"));
  CHECK(says({.nesterov = false, .delay = 2}, "Nesterov"));
  CHECK(says({.delay = 4, .activation = 0.26}, "activation"));
  CHECK(says({.activation = 0.5}, "activation"));
}
