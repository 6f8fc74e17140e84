// What the codecs share: numbers in byte buffers that need not be aligned, and their refusals.
// Numbers are little-endian on the wire, which is the order of the hosts that are supported.
#pragma once

#include "kernels/base/result.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

// The same bits on every CPU: no operation is fused or reordered (-ffp-contract=off), only wider.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) &&                             \
    !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define SHOAL_COMPRESS_WIDER __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
#else
#define SHOAL_COMPRESS_WIDER
#endif

namespace shoal::kernels {

static_assert(std::endian::native == std::endian::little, "the wire has the order of the host");

/// The bits of a float without its sign are from here on those of infinity and NaN.
inline constexpr std::uint32_t not_finite_from = 0x7f800000U;

inline std::uint32_t magnitude_bits(float x) {
  return std::bit_cast<std::uint32_t>(x) & 0x7fffffffU;
}

// memcpy, because a float may not be read through a pointer into bytes; compilers make it one load.
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

/// The failure of an encoder that met a value which is not finite; looks for the first. Requires:
/// there is one.
failure not_finite(std::span<const float> x);
/// The failure of a decoder for `n` values that got another length than it needs.
failure wrong_length(std::size_t got, std::size_t needed, std::size_t n);

} // namespace shoal::kernels
