// A small decoder-only transformer over bytes: pre-norm (layer norm with gain only), rotary
// positions, GELU, no biases, the embedding tied to the output matrix. Parameters and gradients are
// flat float vectors that the caller owns (layout.hpp), so that they can be averaged, shipped and
// shared. Source: Vaswani et al., arXiv:1706.03762; rotary positions: Su et al., arXiv:2104.09864.
#pragma once

#include "kernels/base/result.hpp"
#include "kernels/layout.hpp"
#include "kernels/learn/transformer_math.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace shoal::learn {

/// Loads libtorch, once; the error says why it cannot be. `transformer` loads it itself, and throws std::runtime_error where that fails.
result<void> load_torch();

/// Makes tensor operations of the calling thread (libtorch) and of the process (OpenBLAS)
/// single-threaded. OpenMP's setting is per thread, so each thread that computes calls this;
/// `transformer` does so itself. Does nothing where libtorch is not loaded.
void use_one_thread();

/// Thread safety: immutable; all functions may be called from several threads at once.
/// The bits of every result depend on the arguments alone, not on the thread, nor on how many
/// threads compute, nor on OMP_NUM_THREADS, nor on the alignment of the spans (they do on the CPU
/// type: OpenBLAS chooses kernels by it).
class transformer {
public:
  /// With `checkpoint` the backward pass computes each layer's activations again from the layer's
  /// input, and only these inputs are kept: the memory of one layer instead of all, for about a third
  /// more work. The results are the same, to the last bit. Requires: validate(config).
  /// Source: Chen et al., "Training Deep Nets with Sublinear Memory Cost", arXiv:1604.06174.
  explicit transformer(const kernels::transformer_config& config, bool checkpoint = false);

  const kernels::transformer_config& config() const noexcept { return config_; }
  std::size_t parameter_count() const noexcept { return parameter_count_; }
  const std::vector<kernels::tensor_slot>& layout() const noexcept { return layout_; }
  /// Bytes of one sample: context inputs and the byte after each, context + 1.
  std::size_t sample_bytes() const noexcept {
    return static_cast<std::size_t>(config_.context) + 1;
  }
  std::vector<float> initial_parameters(std::uint64_t seed) const {
    return kernels::initial_parameters(config_, seed);
  }

  /// Loss of a sample = mean over its `context` predictions of -ln p(next byte), in nats per byte.
  /// Adds the gradient of the sum of the samples' losses to `gradient_sum` [parameter_count], and
  /// returns that sum; both divided by the number of samples are the means. Works through `chunk`
  /// samples at a time. Requires: tokens.size() == samples * sample_bytes(), sizes as above, no
  /// aliasing.
  double accumulate_gradient(std::span<const float> parameters,
                             std::span<const std::uint8_t> tokens, std::size_t samples,
                             std::span<float> gradient_sum) const;

  /// The mean loss of the samples; 0 for none. Requires: as above.
  double mean_loss(std::span<const float> parameters, std::span<const std::uint8_t> tokens,
                   std::size_t samples) const;

  /// What the model says about the byte after `prompt`, of which it sees the last `context` bytes:
  /// [vocabulary] unnormalized log-probabilities. Requires: prompt not empty.
  std::vector<float> next_logits(std::span<const float> parameters,
                                 std::span<const std::uint8_t> prompt) const;

  static constexpr std::size_t chunk = transformer_chunk;

private:
  kernels::transformer_config config_;
  std::vector<kernels::tensor_slot> layout_;
  std::size_t parameter_count_ = 0;
  std::shared_ptr<const transformer_math> math_;
};

} // namespace shoal::learn
