// ALBERT as a model that is pre-trained: it predicts masked tokens, and whether two segments are
// swapped. Parameters and gradients are flat float vectors that the caller owns
// (albert_layout.hpp). A sample is as albert_sample.hpp has it.
//   loss of a sample = mean over its labels of -ln p(token)  +  -ln p(order of the segments)
// The published run took the mean over the labels of a micro-batch of four. Here the loss of a
// sample does not depend on the others. So a swarm has the gradient of one machine, with any
// division of the samples.
// Source: Lan et al., arXiv:1909.11942; the shape and the constants of Hugging Face's
// AlbertForPreTraining, May 2021.
#pragma once

#include "kernels/base/result.hpp"
#include "kernels/learn/albert_layout.hpp"
#include "kernels/learn/albert_math.hpp"
#include "kernels/learn/albert_sample.hpp"
#include "kernels/learn/model.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace shoal::learn {

/// Means over held-out samples. Masked tokens count equally, so `tokens` can be compared with the
/// cross-entropy of other models of the same tokens.
struct albert_quality {
  double tokens = 0, order = 0;             ///< nats for each label, and for each sample
  double right_tokens = 0, right_order = 0; ///< fractions
  std::size_t labels = 0, samples = 0;
};

/// Thread safety: immutable; all functions may be called from several threads at once.
/// The bits of every result depend on the arguments alone, and on the CPU type (transformer.hpp).
class albert final : public model {
public:
  /// Loads libtorch. Throws std::runtime_error if that fails. Requires: validate(config), and the
  /// head `pretraining`. With `checkpoint` the model keeps only each layer's input, and the
  /// backward pass computes the layer again. The results are the same, to the last bit.
  explicit albert(const albert_config& config, bool checkpoint = false);

  const albert_config& config() const noexcept { return config_; }
  albert_format format() const noexcept { return {config_.vocabulary, config_.positions}; }
  std::size_t parameter_count() const noexcept override { return kernels::end_of(layout_); }
  const std::vector<kernels::tensor_slot>& layout() const noexcept override { return layout_; }
  std::vector<float> initial_parameters(std::uint64_t seed) const override {
    return albert_initial_parameters(config_, seed);
  }
  std::size_t sample_bytes() const noexcept override { return format().bytes(); }
  result<void> check_samples(std::span<const std::byte> samples) const override {
    return format().check(samples);
  }

  /// Works through `chunk` samples at a time.
  double accumulate_gradient(std::span<const float> parameters, std::span<const std::byte> samples,
                             std::size_t count, std::span<float> gradient_sum) const override;
  double mean_loss(std::span<const float> parameters, std::span<const std::byte> samples,
                   std::size_t count) const override;
  /// Requires: as mean_loss.
  albert_quality quality(std::span<const float> parameters, std::span<const std::byte> samples,
                         std::size_t count) const;

  static constexpr std::size_t chunk = 16;

private:
  template <class Use>
  void by_chunks(std::span<const std::byte> samples, std::size_t count, Use use) const;

  albert_config config_;
  std::vector<kernels::tensor_slot> layout_;
  std::shared_ptr<const albert_math> math_;
};

} // namespace shoal::learn
