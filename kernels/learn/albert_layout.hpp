// The shape of ALBERT, an encoder whose layers share their weights, and the place of each of its
// tensors in the flat parameter vector. The tensors have the names of Hugging Face's files.
//   x = norm(word[id] + position[t] + segment[s]);  h = x W_in + b_in
//   `layers` times with the same weights:  h = norm(h + attention(h)),  h = norm(h +
//   feed_forward(h))
// Source: Lan et al., "ALBERT: A Lite BERT for Self-supervised Learning of Language
// Representations", arXiv:1909.11942, sections 3.1 and 3.2.
#pragma once

#include "kernels/base/result.hpp"
#include "kernels/layout.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace shoal::learn {

/// The part of the model after its last layer.
enum class albert_head : std::uint8_t {
  pretraining, ///< masked tokens, and the order of two segments
  tokens,      ///< a class for each token
  sequence,    ///< a class for the whole sample, from its first token
  mean         ///< a class for the whole sample, from the mean over its tokens
};

struct albert_config {
  std::int64_t vocabulary = 32000;  ///< number of tokens; at most 2^24
  std::int64_t embedding = 128;     ///< width of the embeddings
  std::int64_t hidden = 1024;       ///< width of the layers; a multiple of `heads`
  std::int64_t layers = 24;         ///< uses of the shared layer
  std::int64_t heads = 16;          ///< parts of attention; they divide `hidden`
  std::int64_t feed_forward = 4096; ///< width inside the feed-forward part
  std::int64_t positions = 512;     ///< the longest sample in tokens
  albert_head head = albert_head::pretraining;
  std::int64_t classes = 2; ///< number of classes, for all heads but `pretraining`
  bool operator==(const albert_config&) const = default;
};

/// The token that pads samples. Its embedding starts at zero and gets no gradient as an input.
inline constexpr std::int64_t albert_padding = 0;
inline constexpr std::int64_t albert_segments = 2;
inline constexpr std::size_t albert_embedding_tensors = 7;
inline constexpr std::size_t albert_layer_tensors = 16;

/// Errors: a size that is not positive or larger than any that fits in memory, a width that heads
/// do not divide.
result<void> validate(const albert_config& config);

/// The tensors in the order in which they lie in the flat vector, without gaps: embedding, shared
/// layer, head. Requires: validate(config).
std::vector<kernels::tensor_slot> albert_layout(const albert_config& config);

/// Matrices and embeddings are normal with deviation 0.02, biases 0, gains 1, and the row of the
/// padding 0. Equal seeds give equal bits. Requires: validate(config).
std::vector<float> albert_initial_parameters(const albert_config& config, std::uint64_t seed);

/// Whether weight decay shrinks the tensor `name`. The published runs excluded names with "bias" or
/// "LayerNorm.weight". The gain `full_layer_layer_norm.weight` has neither and is decayed.
bool albert_decays(std::string_view name) noexcept;

} // namespace shoal::learn
