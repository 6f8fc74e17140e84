// The shape of DALL-E as volunteers trained it: one decoder over the tokens of a caption and the
// codes of a picture. The header gives the place of each tensor in the flat parameter vector.
//   input: start, caption [text_length], codes [side * side] without the last one
//   (x1, x2) = (e, e);  `layers` times  x1 += scale attention(shift(norm(x2))),
//                                       x2 += scale feed_forward(shift(norm(x1)))
//   output: norm((x1 + x2) / 2), times the embeddings, plus a bias
// A layer uses the weights `weights_of(layer)`. Norms and scales are the layer's own.
// Source: Borzunov et al., "Training Transformers Together", arXiv:2207.03481; the layers of
// lucidrains' DALLE-pytorch.
#pragma once

#include "kernels/base/result.hpp"
#include "kernels/layout.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace shoal::learn {

struct dalle_config {
  std::int64_t text_vocabulary = 32100; ///< tokens of captions; token 0 starts and pads
  std::int64_t text_length = 256;       ///< most tokens of a caption
  std::int64_t codes = 8192;            ///< different codes of pictures
  std::int64_t side = 32;               ///< codes in a row and in a column of a picture
  std::int64_t dim = 1024;              ///< width of the layers; a multiple of 4 and of 2 * heads
  std::int64_t heads = 16;
  std::int64_t layers = 64;
  /// Layers i and i + groups share their weights. The last layer has its own. 0: none share.
  std::int64_t groups = 4;

  std::int64_t image_length() const noexcept { return side * side; }
  std::int64_t positions() const noexcept { return text_length + image_length(); }
  std::int64_t head_width() const noexcept { return dim / heads; }
  /// Each position of a caption has a padding token of its own.
  std::int64_t text_tokens() const noexcept { return text_vocabulary + text_length; }
  std::int64_t tokens() const noexcept { return text_tokens() + codes; }
  /// The number of sets of weights, and the set of a layer.
  std::int64_t weight_sets() const noexcept { return weights_of(layers - 1) + 1; }
  std::int64_t weights_of(std::int64_t layer) const noexcept {
    if (groups == 0 || layers <= groups) return layer;
    return layer == layers - 1 ? groups : layer % groups;
  }
  bool operator==(const dalle_config&) const = default;
};

/// The parts of a layer that layers share, and those that are its own, in the order of the layout.
inline constexpr std::size_t dalle_weight_tensors = 7;
inline constexpr std::size_t dalle_layer_tensors = 6;
/// Samples that a model computes at a time.
inline constexpr std::size_t dalle_chunk = 16;
/// A picture's mean cross-entropy counts this many times as much as a caption's.
inline constexpr double dalle_image_weight = 7;

/// Errors: a size that is not positive or larger than any that fits in memory, or a width that the
/// heads do not divide.
result<void> validate(const dalle_config& config);

/// The tensors in the order in which they lie in the flat vector, without gaps. They are the
/// embedding, the sets of weights, the norms and scales of each layer, and the output.
/// Requires: validate(config).
std::vector<kernels::tensor_slot> dalle_layout(const dalle_config& config);

/// Matrices and embeddings are uniform within 1 / sqrt(inputs), biases 0 and gains 1. Scales are
/// 0.1 in the first 18 layers, 1e-5 in the next six, and 1e-6 in deeper ones. Equal seeds give
/// equal bits. Requires: validate(config).
std::vector<float> dalle_initial_parameters(const dalle_config& config, std::uint64_t seed);

} // namespace shoal::learn
