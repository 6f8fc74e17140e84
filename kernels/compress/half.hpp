// What the two formats of 16 bits share: lengths, refusals, and the slow twins that specify both.
#pragma once

#include "kernels/base/result.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace shoal::kernels {

/// A sign, an exponent and a fraction in 16 bits, whose values ascend with the bits.
struct half_format {
  std::uint32_t infinity;                 ///< its bits, without a sign
  double (*value_of)(std::uint32_t bits); ///< by definition; bits < infinity
  bool (*encode_all)(const float* x, std::byte* bytes,
                     std::size_t n); ///< whether one is not finite
  bool (*decode_all)(const std::byte* bytes, float* x, std::size_t n); ///< the same
  const char* not_finite_came;                                         ///< what a decoder says then
};

// As encode_float16 and so on: see there.
result<void> encode_half(const half_format& format, std::span<const float> x,
                         std::span<std::byte> bytes);
result<void> decode_half(const half_format& format, std::span<const std::byte> bytes,
                         std::span<float> x);
result<void> encode_half_reference(const half_format& format, std::span<const float> x,
                                   std::span<std::byte> bytes);
result<void> decode_half_reference(const half_format& format, std::span<const std::byte> bytes,
                                   std::span<float> x);

} // namespace shoal::kernels
