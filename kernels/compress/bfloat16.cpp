#include "kernels/compress/bfloat16.hpp"

#include "kernels/base/check.hpp"
#include "kernels/compress/wire.hpp"

#include <algorithm>
#include <cmath>

namespace shoal::kernels {

namespace {

constexpr std::uint32_t infinity = 0x7f80;

/// Whether a value is not finite.
SHOAL_COMPRESS_WIDER bool encode_all(const float* x, std::byte* bytes, std::size_t n) {
  std::uint32_t worst = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(x[i]);
    const std::uint32_t u = bits & 0x7fffffffU;
    worst = std::max(worst, u);
    // Half of a unit in the last place, less one if that is even: ties stay even.
    const std::uint32_t rounded = (u + 0x7fffU + ((u >> 16) & 1U)) >> 16;
    const std::uint32_t b = std::min(rounded, infinity - 1);
    store(bytes, i, static_cast<std::uint16_t>(b | ((bits >> 16) & 0x8000U)));
  }
  return worst >= not_finite_from;
}

SHOAL_COMPRESS_WIDER bool decode_all(const std::byte* bytes, float* x, std::size_t n) {
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

failure not_finite_came() {
  return failure{"a compressed bfloat16 is not finite"};
}

} // namespace

result<void> encode_bfloat16(std::span<const float> x, std::span<std::byte> bytes) {
  SHOAL_CHECK(bytes.size() == bfloat16_bytes(x.size()), "room for what is encoded");
  if (encode_all(x.data(), bytes.data(), x.size()))
    return not_finite(x);
  return {};
}

result<void> decode_bfloat16(std::span<const std::byte> bytes, std::span<float> x) {
  if (bytes.size() != bfloat16_bytes(x.size()))
    return wrong_length(bytes.size(), bfloat16_bytes(x.size()), x.size());
  if (decode_all(bytes.data(), x.data(), x.size()))
    return not_finite_came();
  return {};
}

result<void> encode_bfloat16_reference(std::span<const float> x, std::span<std::byte> bytes) {
  SHOAL_CHECK(bytes.size() == bfloat16_bytes(x.size()), "room for what is encoded");
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (!std::isfinite(x[i]))
      return not_finite(x);
    const double magnitude = std::fabs(double{x[i]});
    // The first above it, then the nearer of that and the one before.
    std::uint32_t low = 0, high = infinity;
    while (high - low > 1) {
      const std::uint32_t middle = (low + high) / 2;
      (value_of(middle) <= magnitude ? low : high) = middle;
    }
    if (high < infinity) {
      const double below = magnitude - value_of(low), above = value_of(high) - magnitude;
      if (above < below || (above == below && high % 2 == 0))
        low = high;
    }
    store(bytes.data(), i, static_cast<std::uint16_t>(low | (std::signbit(x[i]) ? 0x8000U : 0U)));
  }
  return {};
}

result<void> decode_bfloat16_reference(std::span<const std::byte> bytes, std::span<float> x) {
  if (bytes.size() != bfloat16_bytes(x.size()))
    return wrong_length(bytes.size(), bfloat16_bytes(x.size()), x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::uint32_t b = load<std::uint16_t>(bytes.data(), i);
    if ((b & 0x7fffU) >= infinity)
      return not_finite_came();
    x[i] = static_cast<float>((b & 0x8000U) != 0 ? -value_of(b & 0x7fffU) : value_of(b));
  }
  return {};
}

} // namespace shoal::kernels
