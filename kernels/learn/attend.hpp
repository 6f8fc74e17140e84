// Attention of one query to chosen positions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace shoal::learn {

struct attention_rows {
  const float *keys = nullptr, *values = nullptr; ///< position p begins at p * stride
  std::size_t stride = 0, heads = 1, width = 0;
};

/// For each head: out [heads, width] = the sum over `positions` of softmax(q k / sqrt(width)) v.
/// Requires: at least one position; no aliasing.
void attend(const float* query, const attention_rows& rows, std::span<const std::int64_t> positions,
            float* out);

} // namespace shoal::learn
