// The floating-point operations of a transformer. A multiplication and an addition are two.
// Source: Ryabinin et al., "SWARM Parallelism" (2023), section 4.3: a layer with an inner width of
// four times its width takes 24 s d^2 + 4 s^2 d.
#pragma once

namespace shoal::kernels {

/// Forward through one layer, for a sequence of s = `tokens`. The projections of attention take
/// 8 s d^2, and those of the inner layer 4 s d h. The scores and their sums take 4 s^2 d.
constexpr double layer_forward_flops(double tokens, double width, double inner) {
  return 8 * tokens * width * width + 4 * tokens * width * inner + 4 * tokens * tokens * width;
}

/// A backward pass takes twice the operations of a forward pass.
inline constexpr double forward_and_backward = 3;

} // namespace shoal::kernels
