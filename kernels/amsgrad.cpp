#include "kernels/amsgrad.hpp"

#include "kernels/base/check.hpp"

#include <algorithm>
#include <cmath>

namespace shoal::kernels {

void amsgrad_step(const amsgrad_config& config, std::uint64_t step_number,
                  std::span<const float> gradient, std::span<float> parameters,
                  std::span<float> state) {
  const auto n = parameters.size();
  SHOAL_CHECK(step_number >= 1 && gradient.size() == n && state.size() == amsgrad_state_size(n),
              "a step needs vectors of one size");
  const auto t = static_cast<double>(step_number);
  const auto rate = static_cast<float>(config.learning_rate / (1 - std::pow(config.beta1, t)));
  const auto correction = static_cast<float>(1 / std::sqrt(1 - std::pow(config.beta2, t)));
  const auto b1 = static_cast<float>(config.beta1), b2 = static_cast<float>(config.beta2),
             epsilon = static_cast<float>(config.epsilon);
  auto *m = state.data(), *s = m + n, *most = s + n;
  const auto* g = gradient.data();
  auto* x = parameters.data();
  for (std::size_t i = 0; i < n; ++i) {
    m[i] = b1 * m[i] + (1 - b1) * g[i];
    s[i] = b2 * s[i] + (1 - b2) * g[i] * g[i];
    most[i] = most[i] < s[i] ? s[i] : most[i];
    x[i] -= rate * m[i] / (std::sqrt(most[i]) * correction + epsilon);
  }
}

} // namespace shoal::kernels
