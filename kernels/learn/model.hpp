// A model that can be trained: a loss of samples, and its gradient, over a flat vector of
// parameters that the caller owns. A sample is bytes, and only the model knows their meaning.
#pragma once

#include "kernels/base/result.hpp"
#include "kernels/layout.hpp"
#include "kernels/learn/tokens.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace shoal::learn {

/// Thread safety: immutable; all functions may be called from several threads at once.
class model {
public:
  virtual ~model() = default;

  virtual std::size_t parameter_count() const noexcept = 0;
  /// The tensors in the order in which they lie in the parameters, without gaps.
  virtual const std::vector<kernels::tensor_slot>& layout() const noexcept = 0;
  /// The parameters where training starts. Equal seeds give equal bits.
  virtual std::vector<float> initial_parameters(std::uint64_t seed) const = 0;

  /// Bytes of one sample.
  virtual std::size_t sample_bytes() const noexcept = 0;
  /// Whether `samples` are whole samples of this model, without gaps. Code that gets samples from
  /// another host calls this first. Errors: a size that is no multiple of sample_bytes(), or bytes
  /// without a meaning to the model, and their place.
  virtual result<void> check_samples(std::span<const std::byte> samples) const = 0;

  /// Adds the gradient of the sum of the samples' losses to `gradient_sum` [parameter_count], and
  /// returns the sum of the losses. Divide both by the number of samples for the means. Requires:
  /// check_samples(samples), samples.size() == count * sample_bytes(), parameters
  /// [parameter_count], no aliasing.
  virtual double accumulate_gradient(std::span<const float> parameters,
                                     std::span<const std::byte> samples, std::size_t count,
                                     std::span<float> gradient_sum) const = 0;
  /// The mean loss of the samples; 0 for none. Requires: as above.
  virtual double mean_loss(std::span<const float> parameters, std::span<const std::byte> samples,
                           std::size_t count) const = 0;
};

/// A model that predicts the next token.
class language_model : public model {
public:
  virtual std::int64_t vocabulary() const noexcept = 0;
  /// The number of earlier tokens that a prediction may use.
  virtual std::size_t context() const noexcept = 0;
  /// The model's prediction for the token after `prompt`, of which it sees the last context()
  /// tokens: [vocabulary] unnormalized log-probabilities. Requires: a prompt that is not empty and
  /// whose tokens are in the vocabulary.
  virtual std::vector<float> next_logits(std::span<const float> parameters,
                                         std::span<const token_id> prompt) const = 0;
};

} // namespace shoal::learn
