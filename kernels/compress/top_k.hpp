// The k values of largest magnitude of a float vector, each with its index; the others are sent as
// 0.
// With error feedback the values that were not sent are kept and added to the next vector, so that
// no value is lost for good.
//   sent = the k largest of |x[i]|; of equal ones those with the lower indices
//   with feedback: v = x + residual;  sent = top_k(v);
//                  residual' = v where it was not sent, and 0 where it was
// Shapes: x [n], bytes [8 k]: indices u32 [k] ascending, values float32 [k], exactly those of x.
// Error: |x'[i] - x[i]| <= the k-th largest magnitude, and 0 where i was sent;
//   |x' - x|^2 <= (1 - k/n) |x|^2.
// Source: Stich, Cordonnier, Jaggi, "Sparsified SGD with Memory", arXiv:1809.07599.
#pragma once

#include "kernels/base/result.hpp"

#include <cstddef>
#include <span>

namespace shoal::kernels {

constexpr std::size_t top_k_bytes(std::size_t k) {
  return 8 * k;
}

/// Requires: bytes.size() == top_k_bytes(k), x.size() <= 2^32, no aliasing. Errors: k above
/// x.size(), a value that is not finite (then `bytes` is unspecified). Complexity: O(n) on average.
result<void> encode_top_k(std::span<const float> x, std::size_t k, std::span<std::byte> bytes);
/// The k values, and 0 elsewhere. Requires: no aliasing. Errors: a length that is no multiple of 8,
/// or more values than x has. Indices that are not ascending or beyond x. Values that are not
/// finite (then `x` is unspecified).
result<void> decode_top_k(std::span<const std::byte> bytes, std::span<float> x);

/// Encodes with error feedback. `residual` [n] starts as zeros. Ensures: the sent values and the
/// new residual add up to v, exactly. Requires: as encode_top_k. Errors: as there, for v; then the
/// residual is unchanged.
result<void> encode_top_k_with_feedback(std::span<const float> x, std::size_t k,
                                        std::span<float> residual, std::span<std::byte> bytes);

/// Specifies encode_top_k: all values are sorted. Slow; for tests.
result<void> encode_top_k_reference(std::span<const float> x, std::size_t k,
                                    std::span<std::byte> bytes);

} // namespace shoal::kernels
