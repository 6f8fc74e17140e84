// SGD with momentum, AdamW and LAMB over flat vectors. A step is a pure function of (config, step
// number, gradient, parameters, state). So parameters and state are buffers that can be hashed and
// sent to a joiner. Every peer that holds the same bits computes the same bits. The code is plain
// loops without torch.
//   sgd:   v = momentum v + g;  x = x - rate (v + decay x)
//   adamw: m = b1 m + (1-b1) g;  s = b2 s + (1-b2) g^2;  m' = m / (1-b1^t), s' = s / (1-b2^t)
//          x = x - rate decay x - rate m' / (sqrt(s') + epsilon)
//   lamb:  per tensor u = m / (sqrt(s) + epsilon) + decay x;  x = x - rate c r u,
//          r = min(|x|, clamp) / |u| (1 if either norm is 0),
//          c = sqrt(1-b2^t) / (1-b1^t) with `debias`, else 1
//   adamw8, lamb8: as adamw and lamb, with m and s in 8 bits by blocks of 4096
//          (compress/blockwise8: the signed code for m, the unsigned one for s)
// A step of the 8-bit kinds decodes the moments, computes in float, applies the new moments, and
// encodes them. A decoded m is off by at most 0.9/256 of the block's largest m, and a decoded s by
// 0.9/512 of its largest s. Where s is decoded as 0, the new s still has (1-b2) g^2, so a step
// never divides by epsilon alone.
// Source: AdamW: Loshchilov and Hutter, arXiv:1711.05101, as torch::optim::AdamW; LAMB: You et al.,
// arXiv:1904.00962, with the debias and weight-norm clamp of the implementations that collaborative
// ALBERT training used; 8 bits: Dettmers et al., arXiv:2110.02861.
#pragma once

#include "kernels/base/payload.hpp"
#include "kernels/base/result.hpp"
#include "kernels/layout.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace shoal::kernels {

enum class optimizer_kind : std::uint8_t { sgd, adamw, lamb, adamw8, lamb8 };

std::string_view to_string(optimizer_kind kind) noexcept;
/// Errors: an unknown name; the message lists the known ones.
result<optimizer_kind> parse_optimizer_kind(std::string_view name);

/// The options of an optimizer. A scenario's `training.optimizer` is this struct, so its defaults
/// are also those of scenarios.
struct optimizer_config {
  optimizer_kind kind = optimizer_kind::adamw;
  double learning_rate = 1e-3;
  double momentum = 0;            ///< sgd only
  double beta1 = 0.9;             ///< adamw, lamb
  double beta2 = 0.99;            ///< adamw, lamb
  double epsilon = 1e-8;          ///< adamw, lamb (LAMB is usually run with 1e-6)
  double weight_decay = 0;        ///< decoupled; times the learning rate
  bool debias = true;             ///< lamb only; adamw always does
  double weight_norm_clamp = 1e4; ///< lamb only: upper bound of |x| in the trust ratio
  double trust_ratio_max = 0;     ///< lamb only: upper bound of the trust ratio; 0 = none
  /// lamb only: tensors without weight decay have a trust ratio, too (decay_groups.hpp). A bias
  /// that begins at 0 then hardly moves, because its ratio is its own small norm.
  bool adapt_undecayed = true;
  double clip_norm = 0;           ///< gradients with a larger norm are scaled down to it; 0 = off
  std::uint64_t warmup_steps = 0; ///< the rate rises linearly during these steps; 0 = off
  std::uint64_t decay_steps = 0;  ///< the rate then falls linearly until this step; 0 = off
  double final_rate_fraction = 0; ///< the fraction of the rate after decay_steps
  bool operator==(const optimizer_config&) const = default;
};

/// Errors: a value outside its range (rates negative or not finite, betas outside [0, 1), decay
/// before warm-up ends).
result<void> validate(const optimizer_config& config);

/// Whether the state is an array of floats. A coded state can be read only by steps.
bool float_state(optimizer_kind kind) noexcept;

/// Floats of state: 0 (sgd without momentum), n (sgd with it), 2 n (adamw, lamb: m then s). Starts
/// as zeros. Requires: float_state(config.kind).
std::size_t state_size(const optimizer_config& config, std::size_t parameter_count);

/// Bytes of state of every kind, a multiple of 4. Floats take 4 state_size(...). The 8-bit kinds
/// have the code of m and then that of s, blockwise8_bytes(n) each, and zeros up to the multiple.
/// This is about a quarter of floats. Starts as zeros.
std::size_t state_bytes(const optimizer_config& config, std::size_t parameter_count);

/// The rate of step `step_number`, counted from 1. It is rate * t / warmup_steps while t <=
/// warmup_steps. Then it falls from rate at t = warmup_steps + 1 to final_rate_fraction * rate at t
/// = decay_steps + 1, and stays there.
double learning_rate_at(const optimizer_config& config, std::int64_t step_number);

/// Euclidean norm, summed in double in index order.
double norm_of(std::span<const float> values);

/// One step with the mean gradient `gradient`, in place. `layout` has the layers of LAMB; without
/// it the whole vector is one layer. A gradient that is not finite makes moments and parameters
/// NaN, in 8 bits whole blocks of them.
/// Requires: validate(config), step_number >= 1, equal sizes, state.size() == state_bytes(...),
/// aligned as floats.
void step(const optimizer_config& config, std::int64_t step_number, std::span<const float> gradient,
          std::span<float> parameters, std::span<std::byte> state,
          std::span<const tensor_slot> layout = {});
/// The same for a state of floats. Requires: float_state(config.kind), state.size() ==
/// state_size(...).
void step(const optimizer_config& config, std::int64_t step_number, std::span<const float> gradient,
          std::span<float> parameters, std::span<float> state,
          std::span<const tensor_slot> layout = {});

/// The least s that is possible where m is `m`, after any number of steps. By Cauchy-Schwarz m^2 is
/// at most s times (1 - beta1)^2 / ((1 - beta2) (1 - beta1^2 / beta2)). The same bound holds for
/// means over several states. Returns 0 where beta1^2 >= beta2, for which there is no bound.
double least_second_moment(const optimizer_config& config, double m);

/// Raises each second moment to least_second_moment. A lossy codec can leave averaged second
/// moments negative, or so small that a step would be huge. Returns true if any was raised.
/// Requires: float_state(config.kind), state.size() == state_size(config, parameter_count).
bool mend_moments(const optimizer_config& config, std::size_t parameter_count,
                  std::span<float> state);
/// The state `averaged` after mend_moments: the same memory if nothing was raised, or if the state
/// is empty, size-only, or coded in 8 bits.
payload repaired_state(const optimizer_config& config, std::size_t parameter_count,
                       payload averaged);

/// Specifies step for the kinds with 8 bits: the whole state is decoded, stepped as floats by the
/// kind with floats, and encoded. For tests. Requires: as step, and a finite gradient.
void step_8bit_reference(const optimizer_config& config, std::int64_t step_number,
                         std::span<const float> gradient, std::span<float> parameters,
                         std::span<std::byte> state, std::span<const tensor_slot> layout = {});

} // namespace shoal::kernels
