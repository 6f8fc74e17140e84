// Float vectors in 8 bits by 256 buckets of equal width around the mean, and the mean of each
// bucket.
//   mu = mean(x), sd = sqrt(sum_i (x[i] - mu)^2 / (n - 1)), scale = 6 sd / 256
//   q[i] = clamp(round((x[i] - mu) / scale) + 128, 0, 255), ties to even
//   codebook[b] = mean of the x[i] with q[i] = b, 0 if there are none
//   x'[i] = codebook[q[i]]
// Shapes: x [n], bytes [1024 + n]: codebook [256] of float32, then q [n]. Nothing for n = 0. Where
// sd is 0 (all values equal, or n = 1) all values are in bucket 128, exactly. The sums are doubles
// in a fixed order. There are 256 partial sums, with element i in partial i mod 256. Each bucket
// has four, by i mod 4. They are added in the order of their index. x[i] - mu is multiplied by 1 /
// scale.
// Error: |x'[i] - x[i]| <= w + (2^-24 + n 2^-52) max|x| + 2^-149, where
//   w = scale (1 + 2^-40)        for 0 < q[i] < 255,
//   w = max|x - mu| - 126 scale  for q[i] = 0 or 255: beyond 3 sd one mean stands for all.
// The mean of x' is that of x, apart from rounding. The codec is not idempotent: bucket means have
// a smaller sd than the data, which moves the buckets. Vectors of one value are idempotent.
// Source: hivemind, compression/quantization.py, Uniform8BitQuantization, there in float32; it has
// no value for n = 1.
#pragma once

#include "kernels/base/result.hpp"

#include <cstddef>
#include <span>

namespace shoal::kernels {

constexpr std::size_t uniform8_bytes(std::size_t n) {
  return n == 0 ? 0 : 256 * sizeof(float) + n;
}

/// Requires: bytes.size() == uniform8_bytes(x.size()), no aliasing. Errors: a value that is not
/// finite (then `bytes` is unspecified). Complexity: O(n), three passes over x.
result<void> encode_uniform8(std::span<const float> x, std::span<std::byte> bytes);
/// Requires: no aliasing. Errors: another length than uniform8_bytes(x.size()), a codebook with an
/// infinity or NaN (then `x` is untouched).
result<void> decode_uniform8(std::span<const std::byte> bytes, std::span<float> x);

/// Specify the two above, element by element and bucket by bucket. Slow; for tests.
result<void> encode_uniform8_reference(std::span<const float> x, std::span<std::byte> bytes);
result<void> decode_uniform8_reference(std::span<const std::byte> bytes, std::span<float> x);

} // namespace shoal::kernels
