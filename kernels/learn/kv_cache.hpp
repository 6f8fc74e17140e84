// The keys and values that the attention of a block of layers has seen. A model that generates
// token by token keeps them, so that each token passes through the layers once.
//   floats = 2 * layers * samples * most * width
// Source: Shazeer, "Fast Transformer Decoding", arXiv:1911.02150, section 2.
#pragma once

#include "kernels/base/result.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace shoal::learn {

/// The cache of `samples` sequences of equal length. Its memory for `most` tokens is reserved at
/// once, so that a session that has its cache never lacks memory later.
class kv_cache {
public:
  kv_cache() = default;
  /// `width`: the floats of a token's keys in one layer, for all heads. Requires: sizes that fit in
  /// memory.
  kv_cache(std::size_t layers, std::size_t samples, std::size_t most, std::size_t width);

  std::size_t layers() const noexcept { return layers_; }
  std::size_t samples() const noexcept { return samples_; }
  std::size_t width() const noexcept { return width_; }
  /// The tokens of each sequence that the cache holds, and the largest number of them.
  std::size_t length() const noexcept { return length_; }
  std::size_t most() const noexcept { return most_; }
  std::size_t floats() const noexcept { return values_.size(); }

  /// Adds room for `time` tokens, whose keys and values the caller writes. Errors: no room.
  result<void> append(std::size_t time);
  /// Forgets all tokens from `length` on. Errors: the cache is shorter.
  result<void> rollback(std::size_t length);
  /// Sequence i becomes a copy of the former sequence `from[i]`, as beam search needs it. Errors:
  /// `from` of another size than samples(), a sequence that does not exist.
  result<void> reorder(std::span<const std::int64_t> from);

  /// The keys [most, width] of a sequence in a layer.
  float* keys(std::size_t layer, std::size_t sample) noexcept {
    return values_.data() + 2 * (layer * samples_ + sample) * most_ * width_;
  }
  float* values(std::size_t layer, std::size_t sample) noexcept {
    return keys(layer, sample) + most_ * width_;
  }

private:
  std::size_t layers_ = 0, samples_ = 0, most_ = 0, width_ = 0, length_ = 0;
  std::vector<float> values_;
};

} // namespace shoal::learn
