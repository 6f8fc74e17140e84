#include "kernels/compress/bfloat16.hpp"

#include "kernels/compress/half.hpp"
#include "kernels/compress/wire.hpp"

#include <algorithm>
#include <cmath>

namespace shoal::kernels {

namespace {

constexpr std::uint32_t infinity = 0x7f80;

/// Whether a value is not finite.
SHOAL_WIDER bool encode_all(const float* x, std::byte* bytes, std::size_t n) {
  std::uint32_t worst = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(x[i]);
    const std::uint32_t u = bits & 0x7fffffffU;
    worst = std::max(worst, u);
    // Half of a unit in the last place, less one if that place is even, so that ties stay even.
    const std::uint32_t rounded = (u + 0x7fffU + ((u >> 16) & 1U)) >> 16;
    const std::uint32_t b = std::min(rounded, infinity - 1);
    store(bytes, i, static_cast<std::uint16_t>(b | ((bits >> 16) & 0x8000U)));
  }
  return worst >= not_finite_from;
}

SHOAL_WIDER bool decode_all(const std::byte* bytes, float* x, std::size_t n) {
  std::uint32_t worst = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint32_t b = load<std::uint16_t>(bytes, i);
    worst = std::max(worst, b & 0x7fffU);
    x[i] = std::bit_cast<float>(b << 16);
  }
  return worst >= infinity;
}

/// By the definition of the format. Requires: bits < infinity.
double value_of(std::uint32_t bits) {
  const int exponent = static_cast<int>(bits >> 7), fraction = static_cast<int>(bits & 0x7fU);
  return exponent == 0 ? std::ldexp(fraction, -133) : std::ldexp(128 + fraction, exponent - 134);
}

constexpr half_format format{infinity, value_of, encode_all, decode_all,
                             "a compressed bfloat16 is not finite"};

} // namespace

result<void> encode_bfloat16(std::span<const float> x, std::span<std::byte> bytes) {
  return encode_half(format, x, bytes);
}

result<void> decode_bfloat16(std::span<const std::byte> bytes, std::span<float> x) {
  return decode_half(format, bytes, x);
}

result<void> encode_bfloat16_reference(std::span<const float> x, std::span<std::byte> bytes) {
  return encode_half_reference(format, x, bytes);
}

result<void> decode_bfloat16_reference(std::span<const std::byte> bytes, std::span<float> x) {
  return decode_half_reference(format, bytes, x);
}

} // namespace shoal::kernels
