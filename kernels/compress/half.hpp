// The common parts of the two formats of 16 bits: lengths, refusals, and the slow twins that
// specify both.
#pragma once

#include "kernels/base/result.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace shoal::kernels {

/// A sign, an exponent and a fraction in 16 bits, whose values ascend with the bits.
struct half_format {
  std::uint32_t infinity;                 ///< the bits of infinity, without a sign
  double (*value_of)(std::uint32_t bits); ///< by definition; bits < infinity
  bool (*encode_all)(const float* x, std::byte* bytes,
                     // Encodes all values; returns whether one is not finite.
                     std::size_t n);
  bool (*decode_all)(const std::byte* bytes, float* x,
                     std::size_t n); ///< decodes all values; returns the same
  const char* not_finite_came;       ///< the error of a decoder for such a value
};

// See encode_float16 and its neighbours.
result<void> encode_half(const half_format& format, std::span<const float> x,
                         std::span<std::byte> bytes);
result<void> decode_half(const half_format& format, std::span<const std::byte> bytes,
                         std::span<float> x);
result<void> encode_half_reference(const half_format& format, std::span<const float> x,
                                   std::span<std::byte> bytes);
result<void> decode_half_reference(const half_format& format, std::span<const std::byte> bytes,
                                   std::span<float> x);

} // namespace shoal::kernels
