// The outer optimizer of DiLoCo: SGD with momentum on pseudo-gradients, over flat vectors. A
// pseudo-gradient is the negated movement of a peer's local steps away from the outer parameters.
//   pseudo-gradient: g[j] = outer[j] - local[j];  the step takes the mean g over a round's peers
//   plain:    v = momentum v + g;  x = x - rate v
//   nesterov: v = momentum v + g;  x = x - rate (g + momentum v)
//   delayed Nesterov, for pseudo-gradients that arrive one by one; N = `delay`, c = `activation`:
//     buffer = buffer + g;  every N-th step: v = momentum v + buffer / N, buffer = 0
//     x = x - rate (g / N + a momentum v),  a = 1 - c N + c at every N-th step, c at the others
//   With N = 1 delayed Nesterov is nesterov.  With momentum 0 nothing needs a state.
// Shapes: parameters, pseudo-gradient and v are [n] floats.
// Rounding: floats, in the order of the formulas; equal inputs give equal bits.
// Source: v and x as in torch.optim.SGD of PyTorch 1.13 (dampening 0; nesterov after Sutskever et
// al., ICML 2013); DiLoCo: Douillard et al., arXiv:2311.08105 (rate 0.7, momentum 0.9, Nesterov);
// delayed Nesterov: Liu et al., "Asynchronous Local-SGD Training for Language Modeling",
// arXiv:2401.09135, algorithm 3.
#pragma once

#include "kernels/base/result.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace shoal::kernels {

struct outer_optimizer_config {
  double learning_rate = 0.7;
  double momentum = 0.9;
  bool nesterov = true;
  std::int64_t delay = 1; ///< N: pseudo-gradients from one change of v to the next; 1 = each one
  double activation = 0;  ///< c: share of the momentum in the steps between; from 0 to 1 / delay
  bool operator==(const outer_optimizer_config&) const = default;
};

/// Errors: a rate that is negative or not finite, a momentum outside [0, 1), an activation outside
/// [0, 1 / delay]. A delay below 1, or above 1 without Nesterov.
result<void> validate(const outer_optimizer_config& config);

/// Floats of state: 0 without momentum, n for v, 2 n (v, then the buffer) with a delay above 1.
/// Starts as zeros.
std::size_t outer_state_size(const outer_optimizer_config& config, std::size_t parameter_count);

/// Writes out = outer - local. Requires: equal sizes; `out` may be one of the inputs.
void pseudo_gradient(std::span<const float> outer, std::span<const float> local,
                     std::span<float> out);

/// One outer step, in place. `step_number` counts the outer steps of these parameters, from 1.
/// A pseudo-gradient that is not finite makes parameters and state NaN where it is so.
/// Requires: validate(config), step_number >= 1, equal sizes, state.size() ==
/// outer_state_size(...), no aliasing.
void outer_step(const outer_optimizer_config& config, std::int64_t step_number,
                std::span<const float> gradient, std::span<float> parameters,
                std::span<float> state);

} // namespace shoal::kernels
