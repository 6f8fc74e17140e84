// Float vectors as bfloat16: the upper half of a float, 8 bits of exponent and 7 of fraction.
//   bytes[2 i .. 2 i + 1] = the bfloat16 nearest to x[i], the even one on a tie, never infinity
// Shapes: x [n], bytes [2 n]. The sign of a zero is kept. A value that would round to infinity
// becomes the largest finite value, 0x7f7f, about 3.39e38.
// Error: |x'[i] - x[i]| <= max(2^-8 |x[i]|, 2^-134), also where it is clamped.
// Idempotent: a decoded value is encoded to the same bytes.
// Source: Kalamkar et al., "A Study of BFLOAT16 for Deep Learning Training", arXiv:1905.12322.
#pragma once

#include "kernels/base/result.hpp"

#include <cstddef>
#include <span>

namespace shoal::kernels {

constexpr std::size_t bfloat16_bytes(std::size_t n) {
  return 2 * n;
}

/// Requires: bytes.size() == bfloat16_bytes(x.size()), no aliasing. Errors: a value that is not
/// finite (then `bytes` is unspecified). Complexity: O(n).
result<void> encode_bfloat16(std::span<const float> x, std::span<std::byte> bytes);
/// Requires: no aliasing. Errors: another length than bfloat16_bytes(x.size()), an infinity or NaN
/// (then `x` is unspecified).
result<void> decode_bfloat16(std::span<const std::byte> bytes, std::span<float> x);

/// Specify the two above: a search among the values of all finite bfloat16. Slow; for tests.
result<void> encode_bfloat16_reference(std::span<const float> x, std::span<std::byte> bytes);
result<void> decode_bfloat16_reference(std::span<const std::byte> bytes, std::span<float> x);

} // namespace shoal::kernels
