// The encoding of a vector of floats on the wire: exactly, or in fewer bytes at a loss that each
// codec's header bounds. All codecs refuse values that are not finite, and give the same bytes on
// every machine. `size_adaptive` is blockwise8 for 2^16 values and more, and float16 for fewer.
// Decoders check the length and the scales. A flipped bit elsewhere is another finite value, which
// only a checksum can find. Source of size_adaptive: hivemind, compression/adaptive.py,
// SizeAdaptiveCompression.
#pragma once

#include "kernels/base/result.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace shoal::kernels {

/// `top_k` (kernels/compress/top_k.hpp) keeps a share of the values and drops the others.
/// vector_codec decides the share, so the functions below do not take top_k.
enum class codec : std::uint8_t {
  none,
  float16,
  bfloat16,
  uniform8,
  blockwise8,
  size_adaptive,
  top_k
};

/// The codecs that write every value.
inline constexpr codec all_codecs[] = {codec::none,     codec::float16,    codec::bfloat16,
                                       codec::uniform8, codec::blockwise8, codec::size_adaptive};
/// From this many values on size_adaptive is blockwise8.
inline constexpr std::size_t size_adaptive_threshold = 1U << 16;

/// 'none', 'float16' and so on, as in the enum.
std::string_view to_string(codec which);
/// Errors: another name; the message lists them.
result<codec> parse_codec(std::string_view name);

/// The codec that encodes n values: `which`, or the choice of size_adaptive for n values.
codec codec_for(codec which, std::size_t n);

/// The largest error of a value, as a fraction of the largest magnitude among the values encoded
/// with it. For uniform8 it can be any value within the range; the codec headers give bounds for
/// most values.
double largest_loss(codec which);

/// Half of the step between the smallest values of the codec (float16: 2^-25).
double smallest_loss(codec which);

/// The largest magnitude that the codec can write; larger values become this one. Infinity if there
/// is no bound (size_adaptive: for fewer values than its threshold).
double largest_value(codec which);

/// The exact size of encode's result for n values.
std::size_t encoded_bytes(codec which, std::size_t n);

/// Errors: a value that is not finite.
result<std::vector<std::byte>> encode(codec which, std::span<const float> x);
/// The same, into memory of the caller. Requires: bytes.size() == encoded_bytes(which, x.size()),
/// no aliasing.
result<void> encode_into(codec which, std::span<const float> x, std::span<std::byte> bytes);
/// Requires: no aliasing. Errors: another length than encoded_bytes(which, out.size()), or a value,
/// scale or codebook that is not finite; then `out` is unspecified.
result<void> decode(codec which, std::span<const std::byte> bytes, std::span<float> out);

} // namespace shoal::kernels
