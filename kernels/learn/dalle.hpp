// DALL-E as a model that volunteers train: it predicts a caption, and then the codes of a picture.
//   loss of a sample = (mean over the caption's positions of -ln p(token)
//                       + 7 * mean over the picture of -ln p(code)) / 8
// Padding counts as tokens, each position with its own. A sample's loss does not depend on the
// other samples, so a swarm has the gradient of one machine with any division of the samples.
// Source: Borzunov et al., "Training Transformers Together", arXiv:2207.03481.
#pragma once

#include "kernels/base/result.hpp"
#include "kernels/learn/dalle_layout.hpp"
#include "kernels/learn/dalle_math.hpp"
#include "kernels/learn/dalle_sample.hpp"
#include "kernels/learn/model.hpp"
#include "kernels/learn/sampling.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace shoal::learn {

/// A picture to draw. Equal requests give equal pictures.
struct dalle_request {
  std::vector<token_id> caption; ///< [text_length]
  std::uint64_t seed = 1, number = 0;
};

/// Thread safety: immutable; all functions may be called from several threads at once.
/// The bits of every result depend on the arguments alone, and on the CPU type (transformer.hpp).
class dalle final : public model {
public:
  /// Loads libtorch. Throws std::runtime_error if that fails. Requires: validate(config). A model
  /// that is not reversible keeps all activations, and has the same gradient up to rounding.
  explicit dalle(const dalle_config& config, bool reversible = true);

  const dalle_config& config() const noexcept { return config_; }
  dalle_format format() const noexcept { return {config_}; }
  std::size_t parameter_count() const noexcept override { return kernels::end_of(layout_); }
  const std::vector<kernels::tensor_slot>& layout() const noexcept override { return layout_; }
  std::vector<float> initial_parameters(std::uint64_t seed) const override {
    return dalle_initial_parameters(config_, seed);
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
  /// The loss of each sample. Requires: as mean_loss.
  std::vector<dalle_loss> losses(std::span<const float> parameters,
                                 std::span<const std::byte> samples) const;

  /// Draws pictures: the codes of each, row by row. A picture depends on its caption, seed and
  /// number, and not on the others, up to the rounding of a product of matrices. Requires: captions
  /// in the vocabulary, validate(options).
  std::vector<std::vector<token_id>> draw(std::span<const float> parameters,
                                          std::span<const dalle_request> wanted,
                                          const sampling_options& options) const;
  /// The pictures 0 to `count` - 1 of a caption.
  std::vector<std::vector<token_id>> draw(std::span<const float> parameters,
                                          std::span<const token_id> caption, std::size_t count,
                                          const sampling_options& options,
                                          std::uint64_t seed) const;

  /// Pictures that are drawn at once: up to 128 whose keys and values take at most 256 MiB.
  std::size_t drawn_at_once() const noexcept;

  static constexpr std::size_t chunk = dalle_chunk;

private:
  template <class Use>
  void by_chunks(std::span<const std::byte> samples, Use use) const;

  dalle_config config_;
  std::vector<kernels::tensor_slot> layout_;
  std::shared_ptr<const dalle_math> math_;
};

} // namespace shoal::learn
