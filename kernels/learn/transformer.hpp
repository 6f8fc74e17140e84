// A small decoder-only transformer over tokens: pre-norm (layer norm with gain only), rotary
// positions, GELU, no biases, the embedding tied to the output matrix. Parameters and gradients are
// flat float vectors that the caller owns (layout.hpp), so that they can be averaged, sent and
// shared.
// With 256 tokens it is a model of bytes. A sample is context + 1 tokens (tokens.hpp): the inputs,
// and
// the token after each.
// Source: Vaswani et al., arXiv:1706.03762; rotary positions: Su et al., arXiv:2104.09864.
#pragma once

#include "kernels/base/result.hpp"
#include "kernels/layout.hpp"
#include "kernels/learn/model.hpp"
#include "kernels/learn/torch_loader.hpp"
#include "kernels/learn/transformer_math.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace shoal::learn {

/// Thread safety: immutable; all functions may be called from several threads at once.
/// The bits of every result depend on the arguments alone. They do not depend on the thread, the
/// number of threads, OMP_NUM_THREADS, or the alignment of the spans. They do depend on the CPU
/// type, by which OpenBLAS chooses kernels.
class transformer final : public language_model {
public:
  /// Loads libtorch. Throws std::runtime_error if that fails. Requires: validate(config).
  /// With `checkpoint` the model keeps only each layer's input, and the backward pass computes the
  /// layer's activations again. This takes the memory of one layer instead of all, for about a
  /// third more work. The results are the same, to the last bit.
  /// Source: Chen et al., "Training Deep Nets with Sublinear Memory Cost", arXiv:1604.06174.
  explicit transformer(const kernels::transformer_config& config, bool checkpoint = false);

  const kernels::transformer_config& config() const noexcept { return config_; }
  std::size_t parameter_count() const noexcept override { return parameter_count_; }
  const std::vector<kernels::tensor_slot>& layout() const noexcept override { return layout_; }
  std::int64_t vocabulary() const noexcept override { return config_.vocabulary; }
  std::size_t context() const noexcept override {
    return static_cast<std::size_t>(config_.context);
  }
  std::size_t sample_bytes() const noexcept override {
    return (context() + 1) * token_bytes(config_.vocabulary);
  }
  result<void> check_samples(std::span<const std::byte> samples) const override;
  std::vector<float> initial_parameters(std::uint64_t seed) const override {
    return kernels::initial_parameters(config_, seed);
  }

  /// The loss of a sample is the mean over its `context` predictions of -ln p(next token), in nats
  /// per token. Works through `chunk` samples at a time.
  double accumulate_gradient(std::span<const float> parameters, std::span<const std::byte> samples,
                             std::size_t count, std::span<float> gradient_sum) const override;
  double mean_loss(std::span<const float> parameters, std::span<const std::byte> samples,
                   std::size_t count) const override;
  std::vector<float> next_logits(std::span<const float> parameters,
                                 std::span<const token_id> prompt) const override;

  static constexpr std::size_t chunk = transformer_chunk;

private:
  template <class Use>
  void by_chunks(std::span<const std::byte> samples, std::size_t count, Use use) const;
  void check_ids(std::span<const token_id> tokens) const;

  kernels::transformer_config config_;
  std::vector<kernels::tensor_slot> layout_;
  std::size_t parameter_count_ = 0;
  std::shared_ptr<const transformer_math> math_;
};

} // namespace shoal::learn
