#include "kernels/learn/attend.hpp"

#include "kernels/base/dot.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace shoal::learn {

void attend(const float* query, const attention_rows& rows, std::span<const std::int64_t> positions,
            float* out) {
  const auto count = positions.size(), width = rows.width;
  const float scale = 1 / std::sqrt(static_cast<float>(width));
  const auto at = [&](const float* of, std::size_t i) {
    return of + static_cast<std::size_t>(positions[i]) * rows.stride;
  };
  // Positions are the outer loops, because a position's heads lie side by side.
  thread_local std::vector<float> weights; // [heads, count]
  weights.resize(rows.heads * count);
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t h = 0; h < rows.heads; ++h)
      weights[h * count + i] = scale * dot(query + h * width, at(rows.keys, i) + h * width, width);
  for (std::size_t h = 0; h < rows.heads; ++h) {
    const auto of_head = std::span(weights).subspan(h * count, count);
    const float most = *std::max_element(of_head.begin(), of_head.end());
    float sum = 0;
    for (auto& w : of_head) sum += w = std::exp(w - most);
    for (auto& w : of_head) w /= sum;
  }
  std::fill_n(out, rows.heads * width, 0.0F);
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t h = 0; h < rows.heads; ++h) {
      const float weight = weights[h * count + i];
      const float* value = at(rows.values, i) + h * width;
      for (std::size_t k = 0; k < width; ++k) out[h * width + k] += weight * value[k];
    }
}

} // namespace shoal::learn
