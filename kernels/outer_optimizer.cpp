#include "kernels/outer_optimizer.hpp"

#include "kernels/base/check.hpp"

#include <cmath>
#include <string>

namespace shoal::kernels {

namespace {

void step_without_momentum(float rate, std::span<const float> g, std::span<float> x) {
  for (std::size_t i = 0; i < x.size(); ++i) x[i] -= rate * g[i];
}

void step_momentum(float rate, float momentum, bool nesterov, std::span<const float> g,
                   std::span<float> x, std::span<float> velocity) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    const float v = velocity[i] = momentum * velocity[i] + g[i];
    x[i] -= rate * (nesterov ? g[i] + momentum * v : v);
  }
}

/// `full`: the buffer holds its N pseudo-gradients.
void step_delayed(const outer_optimizer_config& c, bool full, std::span<const float> g,
                  std::span<float> x, std::span<float> velocity, std::span<float> buffer) {
  const auto rate = static_cast<float>(c.learning_rate);
  const auto momentum = static_cast<float>(c.momentum);
  const auto count = static_cast<float>(c.delay);
  const double active = full ? 1 - c.activation * static_cast<double>(c.delay - 1) : c.activation;
  const auto pull = static_cast<float>(active * c.momentum);
  for (std::size_t i = 0; i < x.size(); ++i) {
    buffer[i] += g[i];
    if (full) {
      velocity[i] = momentum * velocity[i] + buffer[i] / count;
      buffer[i] = 0;
    }
    x[i] -= rate * (g[i] / count + pull * velocity[i]);
  }
}

} // namespace

result<void> validate(const outer_optimizer_config& c) {
  auto wrong = [](std::string what) -> result<void> {
    return failure{"outer optimizer: " + std::move(what)};
  };
  if (!std::isfinite(c.learning_rate) || c.learning_rate < 0)
    return wrong("learning_rate must be finite and not negative");
  if (!(c.momentum >= 0 && c.momentum < 1)) return wrong("momentum must be at least 0 and below 1");
  if (c.delay < 1) return wrong("delay must be at least 1");
  if (c.delay > 1 && !c.nesterov) return wrong("a delay above 1 is for Nesterov momentum");
  if (!(c.activation >= 0 && c.activation * static_cast<double>(c.delay) <= 1))
    return wrong("activation must be from 0 to 1 / delay");
  if (c.activation > 0 && c.delay == 1) return wrong("activation is for a delay above 1");
  return {};
}

std::size_t outer_state_size(const outer_optimizer_config& config, std::size_t parameter_count) {
  if (config.momentum == 0) return 0;
  return config.delay > 1 ? 2 * parameter_count : parameter_count;
}

void pseudo_gradient(std::span<const float> outer, std::span<const float> local,
                     std::span<float> out) {
  SHOAL_CHECK(outer.size() == local.size() && outer.size() == out.size(),
              "outer and local parameters have equal sizes");
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = outer[i] - local[i];
}

void outer_step(const outer_optimizer_config& config, std::int64_t step_number,
                std::span<const float> gradient, std::span<float> parameters,
                std::span<float> state) {
  const auto n = parameters.size();
  SHOAL_CHECK(step_number >= 1, "outer steps are counted from 1");
  SHOAL_CHECK(gradient.size() == n, "pseudo-gradient and parameters have equal sizes");
  SHOAL_CHECK(state.size() == outer_state_size(config, n),
              "the state has the size that outer_state_size gives");
  const auto rate = static_cast<float>(config.learning_rate);
  if (config.momentum == 0)
    return step_without_momentum(
        static_cast<float>(config.learning_rate / static_cast<double>(config.delay)), gradient,
        parameters);
  if (config.delay == 1)
    return step_momentum(rate, static_cast<float>(config.momentum), config.nesterov, gradient,
                         parameters, state);
  step_delayed(config, step_number % config.delay == 0, gradient, parameters, state.first(n),
               state.last(n));
}

} // namespace shoal::kernels
