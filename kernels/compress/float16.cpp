#include "kernels/compress/float16.hpp"

#include "kernels/compress/half.hpp"
#include "kernels/compress/wire.hpp"

#include <algorithm>
#include <cmath>

namespace shoal::kernels {

namespace {

constexpr std::uint32_t largest_bits = 0x477fe000U;    // 65504 as a float
constexpr std::uint32_t smallest_normal = 0x38800000U; // 2^-14 as a float
constexpr std::uint32_t rebias = (127U - 15U) << 23;   // between the exponents of the two formats
constexpr std::uint16_t infinity = 0x7c00;

/// Whether a value is not finite.
SHOAL_WIDER bool encode_all(const float* x, std::byte* bytes, std::size_t n) {
  std::uint32_t worst = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(x[i]);
    std::uint32_t u = bits & 0x7fffffffU;
    worst = std::max(worst, u);
    u = std::min(u, largest_bits);
    // Half of a unit in the last place, less one if that place is even, so that ties stay even.
    const std::uint32_t normal = (u - rebias + 0xfffU + ((u >> 13) & 1U)) >> 13;
    // The last place of 0.5 is 2^-24, as that of the numbers below 2^-14. So the addition rounds.
    const std::uint32_t subnormal =
        std::bit_cast<std::uint32_t>(std::bit_cast<float>(u) + 0.5F) - 0x3f000000U;
    const std::uint32_t h = u < smallest_normal ? subnormal : normal;
    store(bytes, i, static_cast<std::uint16_t>(h | ((bits >> 16) & 0x8000U)));
  }
  return worst >= not_finite_from;
}

SHOAL_WIDER bool decode_all(const std::byte* bytes, float* x, std::size_t n) {
  std::uint32_t worst = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint32_t h = load<std::uint16_t>(bytes, i);
    const std::uint32_t u = h & 0x7fffU;
    worst = std::max(worst, u);
    const std::uint32_t normal = (u << 13) + rebias;
    // A subnormal becomes the fraction of a number from 2^-14, which is then subtracted.
    const float subnormal =
        std::bit_cast<float>((u << 13) + smallest_normal) - std::bit_cast<float>(smallest_normal);
    const std::uint32_t magnitude = u < 0x400U ? std::bit_cast<std::uint32_t>(subnormal) : normal;
    x[i] = std::bit_cast<float>(magnitude | ((h & 0x8000U) << 16));
  }
  return worst >= infinity;
}

/// By the definition of the format. Requires: bits < infinity.
double value_of(std::uint32_t bits) {
  const int exponent = static_cast<int>(bits >> 10), fraction = static_cast<int>(bits & 0x3ffU);
  return exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
}

constexpr half_format format{infinity, value_of, encode_all, decode_all,
                             "a compressed float16 is not finite"};

} // namespace

result<void> encode_float16(std::span<const float> x, std::span<std::byte> bytes) {
  return encode_half(format, x, bytes);
}

result<void> decode_float16(std::span<const std::byte> bytes, std::span<float> x) {
  return decode_half(format, bytes, x);
}

result<void> encode_float16_reference(std::span<const float> x, std::span<std::byte> bytes) {
  return encode_half_reference(format, x, bytes);
}

result<void> decode_float16_reference(std::span<const std::byte> bytes, std::span<float> x) {
  return decode_half_reference(format, bytes, x);
}

} // namespace shoal::kernels
