// The samples of a decoder-only transformer. A sample is context + 1 tokens (tokens.hpp). The first
// `context` of them are inputs, and the last `context` are the tokens to predict. A model that
// computes derives from this class, which decodes and checks samples and cuts them into chunks.
#pragma once

#include "kernels/base/result.hpp"
#include "kernels/layout.hpp"
#include "kernels/learn/model.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace shoal::learn {

/// The loss of a sample is the mean over its `context` predictions of -ln p(next token), in nats
/// per token.
class sampled_transformer : public language_model {
public:
  const kernels::transformer_config& config() const noexcept { return config_; }
  std::size_t parameter_count() const noexcept final { return parameter_count_; }
  const std::vector<kernels::tensor_slot>& layout() const noexcept final { return layout_; }
  std::int64_t vocabulary() const noexcept final { return config_.vocabulary; }
  std::size_t context() const noexcept final { return static_cast<std::size_t>(config_.context); }
  std::size_t sample_bytes() const noexcept final {
    return (context() + 1) * token_bytes(config_.vocabulary);
  }
  result<void> check_samples(std::span<const std::byte> samples) const final;
  double accumulate_gradient(std::span<const float> parameters, std::span<const std::byte> samples,
                             std::size_t count, std::span<float> gradient_sum) const final;
  double mean_loss(std::span<const float> parameters, std::span<const std::byte> samples,
                   std::size_t count) const final;
  std::vector<float> next_logits(std::span<const float> parameters,
                                 std::span<const token_id> prompt) const final;

protected:
  sampled_transformer(const kernels::transformer_config& config,
                      std::vector<kernels::tensor_slot> layout);

private:
  /// Parameters are [parameter_count()], and tokens are of the vocabulary. A chunk has at most
  /// transformer_chunk samples [count, context + 1], and a prompt 1 to `context` tokens. The
  /// function adds to `gradient_sum` and returns the sum of the samples' losses.
  virtual double add_gradient(std::span<const float> parameters, std::span<const token_id> tokens,
                              std::size_t count, std::span<float> gradient_sum) const = 0;
  /// The sum over all predictions of all samples.
  virtual double sum_of_losses(std::span<const float> parameters, std::span<const token_id> tokens,
                               std::size_t count) const = 0;
  virtual std::vector<float> logits_after(std::span<const float> parameters,
                                          std::span<const token_id> prompt) const = 0;

  template <class Use>
  void by_chunks(std::span<const std::byte> samples, std::size_t count, Use use) const;
  void check_ids(std::span<const token_id> tokens) const;

  kernels::transformer_config config_;
  std::vector<kernels::tensor_slot> layout_;
  std::size_t parameter_count_;
};

} // namespace shoal::learn
