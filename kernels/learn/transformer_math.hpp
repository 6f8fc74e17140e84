// The border between Shoal and libtorch. Loading libtorch takes most of a second, and commands and
// swarms without a transformer should not wait for it. So all code that calls libtorch is a module
// (torch_module.cpp), which is loaded when it is needed.
#pragma once

#include "kernels/layout.hpp"
#include "kernels/learn/layered_model.hpp"
#include "kernels/learn/tokens.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace shoal::learn {

/// The number of samples whose activations are in memory at once. The bits of the results depend on
/// it.
inline constexpr std::size_t transformer_chunk = 16;

struct transformer_shape {
  kernels::transformer_config config;
  bool checkpoint =
      // A backward pass keeps only each layer's input, and computes the rest again.
      false;
  std::vector<kernels::tensor_slot> layout;
};

/// The functions of `transformer` and `transformer_blocks`. Those classes document them, and check
/// sizes and tokens.
class transformer_math {
public:
  virtual ~transformer_math() = default;

  /// The whole model over one chunk; `tokens` [samples, context + 1]. Returns the sum of the
  /// samples' losses.
  virtual double accumulate_gradient(std::span<const float> parameters,
                                     std::span<const token_id> tokens, std::size_t samples,
                                     std::span<float> gradient_sum) const = 0;
  /// The sum of the losses of all predictions of one chunk.
  virtual double sum_of_losses(std::span<const float> parameters, std::span<const token_id> tokens,
                               std::size_t samples) const = 0;
  /// Requires: 1 <= prompt.size() <= context.
  virtual std::vector<float> next_logits(std::span<const float> parameters,
                                         std::span<const token_id> prompt) const = 0;

  /// The pieces of layered_model.
  virtual void embed(std::span<const float> parameters, std::span<const token_id> tokens,
                     std::span<float> out) const = 0;
  virtual void embed_backward(std::span<const token_id> tokens, std::span<const float> gradient_out,
                              std::span<float> gradient_sum) const = 0;
  virtual void forward(layer_range block, std::span<const float> parameters, pass_shape shape,
                       std::span<const float> in, std::span<float> out) const = 0;
  virtual void backward(layer_range block, std::span<const float> parameters, pass_shape shape,
                        std::span<const float> in, std::span<const float> gradient_out,
                        std::span<float> gradient_in, std::span<float> gradient_sum) const = 0;
  virtual double loss(std::span<const float> parameters, pass_shape shape,
                      std::span<const float> in, std::span<const token_id> targets) const = 0;
  virtual double loss_backward(std::span<const float> parameters, pass_shape shape,
                               std::span<const float> in, std::span<const token_id> targets,
                               std::span<float> gradient_in,
                               std::span<float> gradient_sum) const = 0;
  virtual void logits(std::span<const float> parameters, pass_shape shape,
                      std::span<const float> in, std::span<float> out) const = 0;
};

} // namespace shoal::learn

// The functions that the module exports, which the loader finds by name.
extern "C" {
/// The caller owns the returned object.
shoal::learn::transformer_math*
shoal_make_transformer_math(const shoal::learn::transformer_shape& shape);
void shoal_use_one_thread();
}
