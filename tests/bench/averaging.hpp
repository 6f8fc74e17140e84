// The vectors that both sides of the averaging benchmark average. Both sides know member m's value
// j, so that each can check the result.
#pragma once

#include <cstdint>
#include <vector>

namespace shoal::bench {

/// Multiples of 2^-10 below 1: sums of a few are exact in float, in any order.
inline float averaging_value(std::uint64_t member, std::size_t j) {
  return static_cast<float>((j * 2654435761u + member * 40503u) % 1024) * 0x1p-10f;
}

inline std::vector<float> averaging_input(std::uint64_t member, std::size_t n) {
  std::vector<float> out(n);
  for (std::size_t j = 0; j < n; ++j) out[j] = averaging_value(member, j);
  return out;
}

inline float averaging_sum(std::uint64_t members, std::size_t j) {
  float sum = 0;
  for (std::uint64_t m = 0; m < members; ++m) sum += averaging_value(m, j);
  return sum;
}

} // namespace shoal::bench
