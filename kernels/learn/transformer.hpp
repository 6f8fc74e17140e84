// A small decoder-only transformer over tokens: pre-norm (layer norm with gain only), rotary
// positions, GELU, no biases, the embedding tied to the output matrix. Parameters and gradients are
// flat float vectors that the caller owns (layout.hpp), so that they can be averaged, sent and
// shared. With 256 tokens it is a model of bytes.
// Source: Vaswani et al., arXiv:1706.03762; rotary positions: Su et al., arXiv:2104.09864.
#pragma once

#include "kernels/layout.hpp"
#include "kernels/learn/sampled_transformer.hpp"
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
class transformer final : public sampled_transformer {
public:
  /// Loads libtorch. Throws std::runtime_error if that fails. Requires: validate(config).
  /// With `checkpoint` the model keeps only each layer's input, and the backward pass computes the
  /// layer's activations again. This takes the memory of one layer instead of all, for about a
  /// third more work. The results are the same, to the last bit.
  /// Source: Chen et al., "Training Deep Nets with Sublinear Memory Cost", arXiv:1604.06174.
  explicit transformer(const kernels::transformer_config& config, bool checkpoint = false);

  std::vector<float> initial_parameters(std::uint64_t seed) const override {
    return kernels::initial_parameters(config(), seed);
  }

  /// The most samples that a pass computes at once.
  static constexpr std::size_t chunk = transformer_chunk;

private:
  double add_gradient(std::span<const float> parameters, std::span<const token_id> tokens,
                      std::size_t count, std::span<float> gradient_sum) const override {
    return math_->accumulate_gradient(parameters, tokens, count, gradient_sum);
  }
  double sum_of_losses(std::span<const float> parameters, std::span<const token_id> tokens,
                       std::size_t count) const override {
    return math_->sum_of_losses(parameters, tokens, count);
  }
  std::vector<float> logits_after(std::span<const float> parameters,
                                  std::span<const token_id> prompt) const override {
    return math_->next_logits(parameters, prompt);
  }

  std::shared_ptr<const transformer_math> math_;
};

} // namespace shoal::learn
