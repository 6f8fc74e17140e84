// kernels/optimizer against libtorch's own SGD and AdamW, over many steps.
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>
#undef CHECK // libtorch's logging defines one

#include "kernels/base/rng.hpp"
#include "kernels/optimizer.hpp"
#include "kernels/outer_optimizer.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

using namespace shoal;
using namespace shoal::kernels;

namespace {

constexpr std::size_t n = 1003;

/// Largest |ours - torch's| after each of `steps` steps with the same gradients, and the distance
/// that the weights moved.
template <class TorchOptimizer, class Options>
void compare(const optimizer_config& config, const Options& options, int steps) {
  auto random = stream(1, "against_torch");
  std::vector<float> x(n), state(state_size(config, n), 0.0F), g(n);
  for (auto& v : x) v = static_cast<float>(random.normal());
  const auto start = x;
  auto theirs = torch::from_blob(x.data(), {static_cast<std::int64_t>(n)}, torch::kFloat).clone();
  theirs.set_requires_grad(true);
  TorchOptimizer optimizer(std::vector<torch::Tensor>{theirs}, options);
  for (int t = 1; t <= steps; ++t) {
    for (std::size_t i = 0; i < n; ++i) {
      const double size = std::pow(10.0, static_cast<double>(i % 9) - 6.0); // from 1e-6 to 100
      g[i] = static_cast<float>(size * (random.normal() + 0.3));
    }
    theirs.mutable_grad() =
        torch::from_blob(g.data(), {static_cast<std::int64_t>(n)}, torch::kFloat).clone();
    optimizer.step();
    step(config, t, g, x, state);
  }
  double difference = 0, update = 0;
  const auto* reference = theirs.template data_ptr<float>();
  for (std::size_t i = 0; i < n; ++i) {
    difference += std::pow(static_cast<double>(x[i]) - reference[i], 2);
    update += std::pow(static_cast<double>(start[i]) - reference[i], 2);
  }
  CHECK(update > 0);
  CHECK(std::sqrt(difference / update) < 1e-5);
}

} // namespace

TEST_CASE("adamw takes the steps of torch::optim::AdamW") {
  const optimizer_config config{
      .learning_rate = 0.01, .beta1 = 0.9, .beta2 = 0.98, .epsilon = 1e-8, .weight_decay = 0.1};
  compare<torch::optim::AdamW>(
      config, torch::optim::AdamWOptions(0.01).betas({0.9, 0.98}).eps(1e-8).weight_decay(0.1), 50);
}

TEST_CASE("sgd takes the steps of torch::optim::SGD") {
  const optimizer_config config{
      .kind = optimizer_kind::sgd, .learning_rate = 0.001, .momentum = 0.9, .weight_decay = 0};
  compare<torch::optim::SGD>(config, torch::optim::SGDOptions(0.001).momentum(0.9), 50);
}

TEST_CASE("the outer optimizer takes the steps of torch::optim::SGD, with Nesterov and without") {
  for (const bool nesterov : {true, false}) {
    const outer_optimizer_config config{.nesterov = nesterov};
    auto random = stream(2, "against_torch");
    std::vector<float> x(n), state(outer_state_size(config, n)), g(n);
    for (auto& v : x) v = static_cast<float>(random.normal());
    const std::vector<std::int64_t> shape{static_cast<std::int64_t>(n)};
    auto theirs = torch::from_blob(x.data(), shape, torch::kFloat).clone();
    theirs.set_requires_grad(true);
    torch::optim::SGD optimizer(std::vector<torch::Tensor>{theirs},
                                torch::optim::SGDOptions(0.7).momentum(0.9).nesterov(nesterov));
    for (std::int64_t t = 1; t <= 50; ++t) {
      for (auto& v : g) v = static_cast<float>(0.1 * random.normal());
      theirs.mutable_grad() = torch::from_blob(g.data(), shape, torch::kFloat).clone();
      optimizer.step();
      outer_step(config, t, g, x, state);
    }
    const auto* reference = theirs.data_ptr<float>();
    for (std::size_t i = 0; i < n; ++i)
      REQUIRE(std::fabs(x[i] - reference[i]) <= 1e-5 * (1 + std::fabs(reference[i])));
  }
}
