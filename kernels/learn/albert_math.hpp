// The border between ALBERT and libtorch, like transformer_math.hpp.
#pragma once

#include "kernels/layout.hpp"
#include "kernels/learn/albert_layout.hpp"
#include "kernels/learn/layered_model.hpp"
#include "kernels/learn/tokens.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace shoal::learn {

struct albert_shape {
  albert_config config;
  /// A backward pass keeps only each layer's input, and computes the rest again.
  bool checkpoint = false;
  std::vector<kernels::tensor_slot> layout;
};

/// The inputs of the first layer: [samples * time] each.
struct albert_input {
  pass_shape shape;
  std::span<const token_id> tokens, segments;
  std::span<const float> present; ///< 1 for tokens, 0 for padding
};

/// The values that a head predicts.
struct albert_targets {
  std::span<const token_id> places;  ///< [n] tokens with a label, as indices in [samples * time)
  std::span<const token_id> labels;  ///< [n] a token, or a class of the head `tokens`
  std::span<const float> weights;    ///< [n] of each label in the loss
  std::span<const token_id> classes; ///< [samples] the order of segments or the class, or empty
  /// Factors of the classifier's input, for dropout: [samples * time, hidden] for the head
  /// `tokens`, else [samples, hidden]; or empty.
  std::span<const float> dropout{};
};

/// Sums of cross-entropies, in nats: over the labels with their weights, and over the samples.
struct albert_losses {
  double labels = 0, classes = 0;
  double sum() const noexcept { return labels + classes; }
};

/// Unnormalized log-probabilities.
struct albert_scores {
  std::vector<float> labels;  ///< [n, vocabulary], or [n, classes] for the head `tokens`
  std::vector<float> classes; ///< [samples, 2], or [samples, classes]
};

/// The functions of `albert`, `albert_blocks` and `albert_classifier`. Those classes check sizes
/// and tokens. Activations are [samples * time, hidden + 1]: the last number says whether the token
/// is present. Functions with a `gradient_sum` add the gradient of the piece's parameters to it.
class albert_math {
public:
  virtual ~albert_math() = default;

  /// The whole model.
  virtual albert_losses accumulate_gradient(std::span<const float> parameters,
                                            const albert_input& input,
                                            const albert_targets& targets,
                                            std::span<float> gradient_sum) const = 0;
  virtual albert_losses losses(std::span<const float> parameters, const albert_input& input,
                               const albert_targets& targets) const = 0;
  /// Fills the scores of the places of `targets`, and those of the samples if the head has any.
  virtual albert_scores scores(std::span<const float> parameters, const albert_input& input,
                               const albert_targets& targets) const = 0;

  /// The pieces of layered_model.
  virtual void embed(std::span<const float> parameters, const albert_input& input,
                     std::span<float> out) const = 0;
  virtual void embed_backward(std::span<const float> parameters, const albert_input& input,
                              std::span<const float> gradient_out,
                              std::span<float> gradient_sum) const = 0;
  virtual void forward(std::int64_t layers, std::span<const float> parameters, pass_shape shape,
                       std::span<const float> in, std::span<float> out) const = 0;
  virtual void backward(std::int64_t layers, std::span<const float> parameters, pass_shape shape,
                        std::span<const float> in, std::span<const float> gradient_out,
                        std::span<float> gradient_in, std::span<float> gradient_sum) const = 0;
  /// `parameters` are the word embeddings, if the head uses them, and then the head's tensors.
  virtual albert_losses loss(std::span<const float> parameters, pass_shape shape,
                             std::span<const float> in, const albert_targets& targets) const = 0;
  virtual albert_losses loss_backward(std::span<const float> parameters, pass_shape shape,
                                      std::span<const float> in, const albert_targets& targets,
                                      std::span<float> gradient_in,
                                      std::span<float> gradient_sum) const = 0;
};

} // namespace shoal::learn

extern "C" {
/// The caller owns the returned object.
shoal::learn::albert_math* shoal_make_albert_math(const shoal::learn::albert_shape& shape);
}
