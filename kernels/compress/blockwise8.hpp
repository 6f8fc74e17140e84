// Float vectors in 8 bits by blocks of 4096. Each block is divided by its largest magnitude and
// rounded to the nearest of 256 fixed values that are dense near 0 (dynamic tree quantization).
//   absmax[b] = max |x[i]| in block b
//   code[i] = the index of the one of values that is nearest to x[i] / absmax[b], a float quotient
//   x'[i] = values[code[i]] * absmax[b]
//   values = 0, 1 and, for i = 0..6 and j = 0..2^i - 1,
//            10^(i - 6) (0.1 + 0.9 (j + 1/2) / 2^i) and its negative; ascending
// A tie goes to the value nearer to 0. values[127] is 0 and values[255] is 1. -1 cannot be
// represented: the nearest value is values[0] = -0.99296875.
// Shapes: x [n], bytes [4 ceil(n / 4096) + n]: absmax of float32, then code [n]. The last block may
// be short. A block of zeros has absmax 0 and codes 127.
// Error: |x'[i] - x[i]| <= (0.9 / 128 + 2^-22) absmax[b] + 2^-149: half of the widest gap.
// Idempotent if the largest magnitude of each block belongs to a positive value and is at least
// 2^-100, because 1 keeps absmax. A negative one is decoded to 0.993 of it, which is the next
// absmax.
//
// The unsigned code is for values that are not negative, such as second moments. It has twice as
// many values in each decade,
//   values = 0, 1 and, for i = 0..6 and j = 0..2^(i + 1) - 1,
//            10^(i - 6) (0.1 + 0.9 (j + 1/2) / 2^(i + 1)); ascending
// so the code of 0 is 0 and the error at most (0.9 / 256 + 2^-22) absmax[b] + 2^-149. The unsigned
// code is idempotent if the largest value of each block is at least 2^-100. The smallest value
// above 0 is 3.25e-7, and values below half of that share of absmax become 0.
// Source: section 2 of Dettmers et al., "8-bit Optimizers via Block-wise Quantization",
// arXiv:2110.02861; Dettmers, "8-Bit Approximations for Parallelism in Deep Learning",
// arXiv:1511.04561. The values are those of bitsandbytes' create_dynamic_map, rounded to float
// once, not in each step.
#pragma once

#include "kernels/base/result.hpp"

#include <array>
#include <cstddef>
#include <span>

namespace shoal::kernels {

inline constexpr std::size_t blockwise8_block = 4096;

constexpr std::size_t blockwise8_bytes(std::size_t n) {
  return (n / blockwise8_block + (n % blockwise8_block != 0 ? 1 : 0)) * sizeof(float) + n;
}

/// The 256 values, ascending.
const std::array<float, 256>& blockwise8_values();

/// Requires: bytes.size() == blockwise8_bytes(x.size()), no aliasing. Errors: a value that is not
/// finite (then `bytes` is unspecified). Complexity: O(n), one pass over x.
result<void> encode_blockwise8(std::span<const float> x, std::span<std::byte> bytes);
/// Requires: no aliasing. Errors: another length than blockwise8_bytes(x.size()), or an absmax that
/// is infinite, NaN or negative (then `x` is unspecified).
result<void> decode_blockwise8(std::span<const std::byte> bytes, std::span<float> x);

/// Specify the two above: every element is compared with all values. Slow; for tests.
result<void> encode_blockwise8_reference(std::span<const float> x, std::span<std::byte> bytes);
result<void> decode_blockwise8_reference(std::span<const std::byte> bytes, std::span<float> x);

/// The 256 values of the unsigned code, ascending.
const std::array<float, 256>& blockwise8_unsigned_values();

/// The same with the unsigned code. Errors: as above; encoding refuses negative values, and -0.
result<void> encode_blockwise8_unsigned(std::span<const float> x, std::span<std::byte> bytes);
result<void> decode_blockwise8_unsigned(std::span<const std::byte> bytes, std::span<float> x);
result<void> encode_blockwise8_unsigned_reference(std::span<const float> x,
                                                  std::span<std::byte> bytes);
result<void> decode_blockwise8_unsigned_reference(std::span<const std::byte> bytes,
                                                  std::span<float> x);

} // namespace shoal::kernels
