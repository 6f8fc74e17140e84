// Adam whose second moments never fall (AMSGrad), over flat vectors.
//   m = b1 m + (1-b1) g;  s = b2 s + (1-b2) g^2;  s' = max(s', s)
//   x = x - rate m / (1-b1^t) / (sqrt(s' / (1-b2^t)) + epsilon)
// Source: Reddi et al., arXiv:1904.09237, with the bias corrections of torch::optim::Adam.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace shoal::kernels {

struct amsgrad_config {
  double learning_rate = 1e-3;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  bool operator==(const amsgrad_config&) const = default;
};

/// Floats of state for n parameters: m, s and s', which start as zeros.
constexpr std::size_t amsgrad_state_size(std::size_t n) noexcept {
  return 3 * n;
}

/// One step in place. Requires: step_number >= 1, equal sizes, state.size() ==
/// amsgrad_state_size(...), no aliasing.
void amsgrad_step(const amsgrad_config& config, std::uint64_t step_number,
                  std::span<const float> gradient, std::span<float> parameters,
                  std::span<float> state);

} // namespace shoal::kernels
