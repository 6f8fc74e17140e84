#include "kernels/base/dot.hpp"

#include <array>

namespace shoal {

// In a file of its own: inlined into a loop over rows, GCC vectorizes over the rows instead, and
// shuffles more than it adds.
float dot(const float* a, const float* b, std::size_t n) noexcept {
  constexpr std::size_t lanes = 8;
  std::array<float, lanes> sums{};
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes)
    for (std::size_t k = 0; k < lanes; ++k) sums[k] += a[i + k] * b[i + k];
  float out = 0;
  for (; i < n; ++i) out += a[i] * b[i];
  for (const float s : sums) out += s;
  return out;
}

} // namespace shoal
