#include "kernels/base/rng.hpp"
#include "kernels/perceptron.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

using namespace shoal;
using namespace shoal::kernels;

TEST_CASE("a perceptron's gradient is the slope of its loss") {
  auto random = stream(1, "perceptron test");
  for (const std::size_t hidden : {0, 1, 7}) {
    const perceptron network(11, hidden, 4);
    std::vector<float> parameters(network.parameters()), x(11);
    network.initial(3, parameters);
    for (auto& p : parameters) p += static_cast<float>(0.1 * random.normal());
    for (auto& v : x) v = static_cast<float>(random.normal());
    std::vector<double> gradient(parameters.size());
    const double loss = network.accumulate(parameters, x, 2, gradient);
    CHECK(loss == network.judge(parameters, x, 2).loss);
    for (std::size_t j = 0; j < parameters.size(); ++j) {
      auto up = parameters, down = parameters;
      up[j] += 1e-3F, down[j] -= 1e-3F;
      const double slope = (network.judge(up, x, 2).loss - network.judge(down, x, 2).loss) /
                           (static_cast<double>(up[j]) - static_cast<double>(down[j]));
      CAPTURE(hidden);
      CAPTURE(j);
      CHECK(std::abs(gradient[j] - slope) < 1e-4);
    }
  }
}

TEST_CASE("a perceptron without a hidden layer and with equal outputs loses log of the classes") {
  const perceptron network(3, 0, 10);
  CHECK(network.parameters() == 40);
  const std::vector<float> zero(40), x{1, 2, 3};
  CHECK(network.judge(zero, x, 9).loss == doctest::Approx(std::log(10.0)).epsilon(1e-14));
  CHECK(network.judge(zero, x, 0).right);
  CHECK(!network.judge(zero, x, 9).right);
}

TEST_CASE("a perceptron learns a problem that no linear classifier can learn") {
  const perceptron network(2, 8, 2);
  std::vector<float> parameters(network.parameters());
  network.initial(1, parameters);
  for (int step = 0; step < 4000; ++step) {
    std::vector<double> gradient(parameters.size());
    for (const float a : {0.0F, 1.0F})
      for (const float b : {0.0F, 1.0F})
        network.accumulate(parameters, std::vector<float>{a, b}, a != b ? 1 : 0, gradient);
    for (std::size_t j = 0; j < parameters.size(); ++j)
      parameters[j] -= static_cast<float>(0.1 * gradient[j]);
  }
  for (const float a : {0.0F, 1.0F})
    for (const float b : {0.0F, 1.0F})
      CHECK(network.judge(parameters, std::vector<float>{a, b}, a != b ? 1 : 0).right);
}
