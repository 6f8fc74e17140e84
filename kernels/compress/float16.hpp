// Float vectors as IEEE 754 binary16: 1 bit of sign, 5 of exponent, 10 of fraction.
//   bytes[2 i .. 2 i + 1] = the binary16 nearest to x[i], the even one on a tie, <= 65504 in
//   magnitude
// Shapes: x [n], bytes [2 n]. The sign of a zero is kept.
// Error: |x'[i] - x[i]| <= 2^-11 |x[i]| for 2^-14 <= |x[i]| <= 65504, <= 2^-25 below,
// |x[i]| - 65504 above. A clamped value keeps its sign; infinity would spoil the mean of all
// members.
// Idempotent: a decoded value is encoded to the same bytes.
// Source: IEEE 754-2019, binary16; without branches after Giesen, "Float->half variants",
// gist.github.com/rygorous/2156668, float_to_half_fast3_rtne.
#pragma once

#include "kernels/base/result.hpp"

#include <cstddef>
#include <span>

namespace shoal::kernels {

constexpr std::size_t float16_bytes(std::size_t n) {
  return 2 * n;
}

/// Requires: bytes.size() == float16_bytes(x.size()), no aliasing. Errors: a value that is not
/// finite (then `bytes` is unspecified). Complexity: O(n).
result<void> encode_float16(std::span<const float> x, std::span<std::byte> bytes);
/// Requires: no aliasing. Errors: another length than float16_bytes(x.size()), an infinity or NaN
/// (then `x` is unspecified).
result<void> decode_float16(std::span<const std::byte> bytes, std::span<float> x);

/// Specify the two above: a search among the values of all finite binary16. Slow; for tests.
result<void> encode_float16_reference(std::span<const float> x, std::span<std::byte> bytes);
result<void> decode_float16_reference(std::span<const std::byte> bytes, std::span<float> x);

} // namespace shoal::kernels
