// A model in pieces that different machines can hold: embedding, blocks of layers, head. A pipeline
// stage, an inference server and a validator each run one piece, on numbers alone.
//   tokens -> embedding -> activations -> block [0, i) -> activations -> block [i, layers) ->
//   activations -> head -> loss or logits
// Activations are floats [samples, time, width], row-major, and so are gradients of the loss with
// respect to them. The parameters of a piece are one vector: its tensors in the order of the
// layout, without gaps. `gather` copies them from the vector of the whole model, in which the
// parameters of a block lie in the same order. A backward pass computes the piece's forward pass
// again from the input activations, so that a piece keeps nothing between the two passes.
#pragma once

#include "kernels/base/result.hpp"
#include "kernels/layout.hpp"
#include "kernels/learn/tokens.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace shoal::learn {

/// The layers [first, last).
struct layer_range {
  std::int64_t first = 0, last = 0;
  bool operator==(const layer_range&) const = default;
};

/// The size of one pass: `samples` sequences of `time` tokens each.
struct pass_shape {
  std::int64_t samples = 1, time = 1;
  std::size_t tokens() const noexcept { return static_cast<std::size_t>(samples * time); }
};

/// The head's result for targets: the sum of the samples' mean losses, and its gradient.
struct head_gradient {
  double loss = 0;
  std::vector<float> gradient_in;
};

/// A model that runs piece by piece. Functions with a `gradient_sum` add the gradient of the
/// piece's parameters to it.
/// Errors of all functions: layers that the model lacks, a shape that is empty or longer than the
/// context. A span of another size than the arguments need, or a token outside the vocabulary. Each
/// message says which, and what it should be.
/// Requires: no aliasing. Thread safety: immutable; all functions may be called from several
/// threads at once.
class layered_model {
public:
  virtual ~layered_model() = default;

  virtual std::int64_t layers() const noexcept = 0;
  virtual std::int64_t vocabulary() const noexcept = 0;
  /// The largest number of tokens in a sequence.
  virtual std::int64_t context() const noexcept = 0;
  /// The number of floats in a token's activations between layers.
  virtual std::size_t width() const noexcept = 0;

  /// The tensors of a piece, with offsets in the vector of that piece and the names of the whole
  /// model's layout. A tensor that two pieces share is in both. The gradient of the whole model has
  /// the sum of both gradients.
  virtual std::vector<kernels::tensor_slot> embedding_tensors() const = 0;
  virtual result<std::vector<kernels::tensor_slot>> block_tensors(layer_range block) const = 0;
  virtual std::vector<kernels::tensor_slot> head_tensors() const = 0;

  /// Activations of `tokens` [samples * time].
  virtual result<std::vector<float>> embed(std::span<const float> parameters, pass_shape shape,
                                           std::span<const token_id> tokens) const = 0;
  virtual result<void> embed_backward(std::span<const float> parameters, pass_shape shape,
                                      std::span<const token_id> tokens,
                                      std::span<const float> gradient_out,
                                      std::span<float> gradient_sum) const = 0;

  /// The output of the block's last layer.
  virtual result<std::vector<float>> forward(layer_range block, std::span<const float> parameters,
                                             pass_shape shape,
                                             std::span<const float> activations) const = 0;
  /// The gradient with respect to `activations`, the block's input. `gradient_out` is the gradient
  /// with respect to its output.
  virtual result<std::vector<float>> backward(layer_range block, std::span<const float> parameters,
                                              pass_shape shape, std::span<const float> activations,
                                              std::span<const float> gradient_out,
                                              std::span<float> gradient_sum) const = 0;

  /// The sum of the samples' losses. `targets` [samples * time]: the token that each position
  /// should predict.
  virtual result<double> loss(std::span<const float> parameters, pass_shape shape,
                              std::span<const float> activations,
                              std::span<const token_id> targets) const = 0;
  virtual result<head_gradient> loss_backward(std::span<const float> parameters, pass_shape shape,
                                              std::span<const float> activations,
                                              std::span<const token_id> targets,
                                              std::span<float> gradient_sum) const = 0;
  /// The prediction after each sample's last token: [samples, vocabulary] unnormalized
  /// log-probabilities.
  virtual result<std::vector<float>> logits(std::span<const float> parameters, pass_shape shape,
                                            std::span<const float> activations) const = 0;
};

/// The same tensors, one behind the other from offset 0.
std::vector<kernels::tensor_slot> without_gaps(std::vector<kernels::tensor_slot> tensors);

/// Copies the parameters of `piece` out of the parameters of the whole model, whose layout is
/// `whole`. Errors: a tensor that `whole` lacks or has in another shape; `values` of another size
/// than `whole`.
result<std::vector<float>> gather(const std::vector<kernels::tensor_slot>& whole,
                                  std::span<const float> values,
                                  const std::vector<kernels::tensor_slot>& piece);

/// Adds a gradient of `piece` to one of the whole model. Errors: as gather, and `gradient` of
/// another size than `piece`.
result<void> scatter_add(const std::vector<kernels::tensor_slot>& piece,
                         std::span<const float> gradient,
                         const std::vector<kernels::tensor_slot>& whole,
                         std::span<float> gradient_sum);

} // namespace shoal::learn
