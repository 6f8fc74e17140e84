// The positions of DALL-E's decoder: which position sees which, and the angles of its rotary
// embeddings. Positions 0 to text_length are the start and the caption. Position text_length + 1 +
// side * r + c is the code in row r and column c.
// Source: Ramesh et al., arXiv:2102.12092, appendix B.1 (masks); Su et al., arXiv:2104.09864
// (rotary embeddings); Bo Peng's token shift, in lucidrains' DALLE-pytorch.
#pragma once

#include "kernels/learn/dalle_layout.hpp"

#include <cstdint>
#include <vector>

namespace shoal::learn {

/// The codes that the code in (r, c) sees beside the caption. All include (r, c) itself.
enum class dalle_attention : std::uint8_t {
  row,        ///< (r, <= c)
  column,     ///< (<= r, c)
  convolution ///< rows r - 4 to r, and columns c - 4 to c
};
inline constexpr int dalle_attention_kinds = 3;

/// Row, column, row, row, and so on. The last layer is a convolution.
dalle_attention attention_of(const dalle_config& config, std::int64_t layer) noexcept;

/// Whether position p sees position q: [positions, positions] of 0 and 1. A caption is causal.
/// Requires: validate(config).
std::vector<std::uint8_t> dalle_mask(const dalle_config& config, dalle_attention kind);

/// The angle of each pair of channels in a head: [positions, head_width / 2]. The pairs belong to
/// the text axis, the row axis and the column axis, f = head_width / 3 / 2 each. The rest has
/// angle 0.
///   text axis: position * 10000^(-2i / (head_width / 3)); a code has position 8192
///   row and column: pi * linspace(1, 5, f)[i] * linspace(-1, 1, side)[row]; a caption has -10
///   in place of the linspace
/// Requires: validate(config).
std::vector<float> dalle_angles(const dalle_config& config);

} // namespace shoal::learn
