// kernels/convex_quadratic, convex_logistic and convex_problem: gradients against finite
// differences, samples against what their headers say, and training alone against closed forms.
#include "kernels/base/rng.hpp"
#include "kernels/convex_logistic.hpp"
#include "kernels/convex_quadratic.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <memory>

using namespace shoal;
using namespace shoal::kernels;

namespace {

std::vector<float> random_vector(std::size_t n, std::uint64_t seed) {
  auto random = stream(seed, "test_vector");
  std::vector<float> out(n);
  for (auto& x : out) x = static_cast<float>(random.normal());
  return out;
}

std::vector<float> sample_of(const convex_problem& problem, std::uint64_t index) {
  std::vector<float> out(problem.parameters());
  problem.sample(index, out);
  return out;
}

double loss_of(const convex_problem& problem, std::span<const float> x,
               std::span<const float> sample) {
  std::vector<double> ignored(problem.parameters());
  return problem.accumulate(x, sample, ignored);
}

/// Central differences with a power of two as the step, which floats add exactly enough.
void check_gradient(const convex_problem& problem) {
  const auto n = problem.parameters();
  const auto x = random_vector(n, 5);
  constexpr float h = 1.0f / 512;
  for (std::uint64_t index : {0, 7}) {
    const auto sample = sample_of(problem, index);
    std::vector<double> gradient(n, 1.0); // accumulate() adds to this
    problem.accumulate(x, sample, gradient);
    for (std::size_t i = 0; i < n; ++i) {
      auto up = x, down = x;
      up[i] += h;
      down[i] -= h;
      const double difference = (loss_of(problem, up, sample) - loss_of(problem, down, sample)) /
                                (static_cast<double>(up[i]) - static_cast<double>(down[i]));
      CHECK(gradient[i] - 1 == doctest::Approx(difference).epsilon(1e-4).scale(1));
    }
  }
}

optimizer_config sgd(double rate) {
  return {.kind = optimizer_kind::sgd, .learning_rate = rate};
}

double distance(std::span<const float> x, std::span<const double> from) {
  double out = 0;
  for (std::size_t i = 0; i < x.size(); ++i) out += (x[i] - from[i]) * (x[i] - from[i]);
  return std::sqrt(out);
}

} // namespace

TEST_CASE("convex: numbers spaced by the logarithm go from one by the condition to one") {
  CHECK(log_spaced(1, 100) == std::vector<double>{1});
  CHECK(log_spaced(0, 100).empty());
  const auto three = log_spaced(3, 100);
  CHECK(three[0] == doctest::Approx(0.01));
  CHECK(three[1] == doctest::Approx(0.1));
  CHECK(three[2] == 1);
  CHECK(log_spaced(4, 1) == std::vector<double>{1, 1, 1, 1});
}

TEST_CASE("convex: the gradient of the quadratic is that of its loss") {
  check_gradient(convex_quadratic(7, 100, 3));
}
TEST_CASE("convex: the gradient of the logistic regression is that of its loss") {
  check_gradient(convex_logistic(7, 100, 0.5, 3));
  check_gradient(convex_logistic(2, 1, 0, 4));
}

TEST_CASE("convex: a sample is the same for every caller, and differs for another index or seed") {
  for (const bool quadratic : {true, false}) {
    const auto make = [&](std::uint64_t seed) -> std::unique_ptr<convex_problem> {
      if (quadratic) return std::make_unique<convex_quadratic>(9, 10, seed);
      return std::make_unique<convex_logistic>(9, 10, 0.1, seed);
    };
    const auto a = make(1), b = make(1), c = make(2);
    CHECK(sample_of(*a, 4) == sample_of(*b, 4));
    CHECK(sample_of(*a, 4) != sample_of(*a, 5));
    CHECK(sample_of(*a, 4) != sample_of(*c, 4));
    std::vector<float> x(9), y(9);
    a->initial(x);
    b->initial(y);
    CHECK(x == y);
  }
}

TEST_CASE("convex: centres of the quadratic are standard normal around the optimum, which has no "
          "excess loss") {
  const convex_quadratic problem(5, 10, 1);
  constexpr int n = 4000;
  std::vector<double> mean(5), square(5);
  for (int i = 0; i < n; ++i) {
    const auto centre = sample_of(problem, static_cast<std::uint64_t>(i));
    for (std::size_t k = 0; k < 5; ++k) {
      const double z = centre[k] - problem.optimum()[k];
      mean[k] += z / n;
      square[k] += z * z / n;
    }
  }
  for (std::size_t k = 0; k < 5; ++k) {
    CHECK(std::abs(mean[k]) < 4 / std::sqrt(n));
    CHECK(std::abs(square[k] - 1) < 4 * std::sqrt(2.0 / n));
  }
  const std::vector<float> best(problem.optimum().begin(), problem.optimum().end());
  CHECK(problem.held_out_loss(best) < 1e-13);
  auto off = best;
  off[0] += 2; // a shift along the flattest direction, of curvature 1/10
  CHECK(problem.held_out_loss(off) == doctest::Approx(0.5 * 0.1 * 4).epsilon(1e-5));
}

TEST_CASE("convex: SGD alone on the quadratic follows its recursion, sample by sample") {
  const convex_quadratic problem(4, 8, 2);
  constexpr double rate = 0.3;
  constexpr int batch = 5, steps = 12;
  std::vector<float> start(4);
  problem.initial(start);
  std::vector<double> x(start.begin(), start.end());
  for (int k = 0; k < steps; ++k) {
    std::vector<double> mean(4);
    for (int i = 0; i < batch; ++i) {
      const auto centre = sample_of(problem, static_cast<std::uint64_t>(k * batch + i));
      for (std::size_t j = 0; j < 4; ++j) mean[j] += centre[j] / batch;
    }
    for (std::size_t j = 0; j < 4; ++j) x[j] -= rate * problem.eigenvalues()[j] * (x[j] - mean[j]);
  }
  const auto alone = train_alone(problem, sgd(rate), batch, steps);
  for (std::size_t j = 0; j < 4; ++j)
    CHECK(alone[j] == doctest::Approx(x[j]).epsilon(1e-5).scale(1));
  CHECK(train_alone(problem, sgd(rate), batch, 0) == start);
}

TEST_CASE("convex: SGD on the quadratic contracts the expected error by one minus rate times "
          "curvature a step") {
  // The mean of many runs with different noise equals one run with a batch that is as much larger.
  const convex_quadratic problem(3, 4, 1);
  std::vector<float> start(3);
  problem.initial(start);
  constexpr double rate = 0.2;
  constexpr int steps = 6, batch = 20000;
  const auto alone = train_alone(problem, sgd(rate), batch, steps);
  for (std::size_t j = 0; j < 3; ++j) {
    const double contraction = std::pow(1 - rate * problem.eigenvalues()[j], steps);
    const double expected = contraction * (start[j] - problem.optimum()[j]);
    CHECK(std::abs(alone[j] - problem.optimum()[j] - expected) < 5 / std::sqrt(batch));
  }
}

TEST_CASE("convex: labels of the logistic regression follow the hidden weights") {
  const convex_logistic problem(9, 100, 0, 6);
  constexpr int n = 6000;
  double margins = 0, right = 0, expected = 0, variance = 0;
  std::vector<double> square(8);
  for (int i = 0; i < n; ++i) {
    const auto s = sample_of(problem, static_cast<std::uint64_t>(i));
    double m = 0;
    for (std::size_t j = 0; j < 8; ++j) {
      m += problem.hidden()[j] * s[j];
      square[j] += s[j] * s[j] / n;
    }
    margins += m * m / n;
    m += problem.hidden()[8];
    const double p = 1 / (1 + std::exp(-m));
    CHECK((s[8] == 0.0f || s[8] == 1.0f));
    right += s[8] - p;
    expected += std::max(p, 1 - p);
    variance += p * (1 - p);
  }
  CHECK(std::sqrt(margins) == doctest::Approx(3).epsilon(0.05));
  CHECK(std::abs(right) < 4 * std::sqrt(variance));
  CHECK(expected / n > 0.7); // the labels can be learnt
  CHECK(square[0] == doctest::Approx(0.01).epsilon(0.1));
  CHECK(square[7] == doctest::Approx(1).epsilon(0.1));
}

TEST_CASE("convex: the held-out loss of the logistic regression is least near the hidden weights") {
  const convex_logistic problem(6, 1, 0, 3);
  std::vector<float> x(6);
  problem.initial(x);
  CHECK(problem.held_out_loss(x) == doctest::Approx(std::log(2)));
  CHECK(problem.held_out_samples() == 4096);
  CHECK(convex_logistic(1 << 20, 1, 0, 3).held_out_samples() == 16);
  const std::vector<float> hidden(problem.hidden().begin(), problem.hidden().end());
  const double best = problem.held_out_loss(hidden);
  CHECK(best < 0.45);
  for (std::size_t i = 0; i < 6; ++i)
    for (float by : {-1.0f, 1.0f}) {
      auto off = hidden;
      off[i] += by;
      CHECK(problem.held_out_loss(off) > best);
    }
  // With enough samples training finds the weights.
  const auto alone = train_alone(
      problem,
      {.kind = optimizer_kind::adamw, .learning_rate = 0.1, .beta2 = 0.95, .decay_steps = 300}, 256,
      300);
  CHECK(problem.held_out_loss(alone) < best + 0.01);
  CHECK(distance(alone, problem.hidden()) < 0.5);
}

TEST_CASE("convex: a penalty pulls the weights towards zero and leaves the intercept alone") {
  const convex_logistic free(4, 1, 0, 3), pulled(4, 1, 1, 3);
  const auto x = random_vector(4, 1), sample = sample_of(free, 0);
  CHECK(sample == sample_of(pulled, 0));
  std::vector<double> without(4), with(4);
  const double plain = free.accumulate(x, sample, without),
               penalized = pulled.accumulate(x, sample, with);
  double squares = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(with[i] - without[i] == doctest::Approx(x[i]));
    squares += static_cast<double>(x[i]) * x[i];
  }
  CHECK(with[3] == without[3]);
  CHECK(penalized - plain == doctest::Approx(0.5 * squares));
}
