// The common parts of the codecs: numbers in byte buffers that need not be aligned, and the
// refusals.
// Numbers are little-endian on the wire, which is the order of all supported hosts.
#pragma once

#include "kernels/base/result.hpp"
#include "kernels/base/wider.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

namespace shoal::kernels {

static_assert(std::endian::native == std::endian::little, "the wire has the order of the host");

/// From here on the bits of a float without its sign are those of infinity and NaN.
inline constexpr std::uint32_t not_finite_from = 0x7f800000U;

inline std::uint32_t magnitude_bits(float x) {
  return std::bit_cast<std::uint32_t>(x) & 0x7fffffffU;
}

// The code uses memcpy, because a float may not be read through a pointer into bytes. Compilers
// make it one load.
template <class T>
T load(const std::byte* from, std::size_t index) {
  T out;
  std::memcpy(&out, from + index * sizeof(T), sizeof(T));
  return out;
}
template <class T>
void store(std::byte* to, std::size_t index, T value) {
  std::memcpy(to + index * sizeof(T), &value, sizeof(T));
}

/// The failure of an encoder for the first value that is not finite. Requires: there is one.
failure not_finite(std::span<const float> x);
/// The failure of a decoder for `n` values that got another length than it needs.
failure wrong_length(std::size_t got, std::size_t needed, std::size_t n);

} // namespace shoal::kernels
