// The values of blockwise8 (blockwise8.hpp), and the rounding of a block's floats to them. This is
// an internal part of that codec.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace shoal::kernels {

/// The code of 0 in the signed code; the unsigned code of 0 is 0.
inline constexpr std::uint32_t blockwise8_zero = 127;

/// 0, the midpoints of 2^(i + Finer) pieces of each decade, and 1, ascending. An index among them
/// is a rank. Signed (Finer 0): code blockwise8_zero + rank, or blockwise8_zero - rank for negative
/// values. Unsigned (Finer 1): the rank is the code.
template <int Finer>
constexpr auto blockwise8_magnitudes() {
  std::array<float, (std::size_t{127} << Finer) + 2> out{};
  std::size_t rank = 1;
  double tens = 1e6; // 10^(6 - i)
  for (int i = 0; i <= 6; ++i, tens /= 10)
    for (int j = 0; j < 1 << (i + Finer); ++j) {
      // The quotient has integers on both sides, so only the division and the conversion round.
      const double twice = 2 << (i + Finer);
      out[rank++] = static_cast<float>((twice + 9 * (2 * j + 1)) / (10 * twice * tens));
    }
  out[rank] = 1;
  return out;
}

/// code[i] = the code of the value nearest to x[i] / absmax, a float quotient.
/// Requires: absmax > 0 and the largest magnitude of x, so that quotients are at most 1.
void blockwise8_quantize(const float* x, std::size_t n, float absmax, std::uint8_t* code);
/// The same by the unsigned code. Requires: x >= 0.
void blockwise8_quantize_unsigned(const float* x, std::size_t n, float absmax, std::uint8_t* code);

} // namespace shoal::kernels
