#include "kernels/compress/codec.hpp"

#include "kernels/base/check.hpp"
#include "kernels/compress/bfloat16.hpp"
#include "kernels/compress/blockwise8.hpp"
#include "kernels/compress/float16.hpp"
#include "kernels/compress/uniform8.hpp"
#include "kernels/compress/wire.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <string>

namespace shoal::kernels {

namespace {

/// One row for each codec of its own, in the order of the enum.
struct row {
  std::size_t (*bytes)(std::size_t);
  result<void> (*encode)(std::span<const float>, std::span<std::byte>);
  result<void> (*decode)(std::span<const std::byte>, std::span<float>);
};

SHOAL_WIDER bool any_not_finite(const float* x, std::size_t n) {
  std::uint32_t worst = 0;
  for (std::size_t i = 0; i < n; ++i) worst = std::max(worst, magnitude_bits(x[i]));
  return worst >= not_finite_from;
}

std::size_t plain_bytes(std::size_t n) {
  return n * sizeof(float);
}
result<void> encode_plain(std::span<const float> x, std::span<std::byte> bytes) {
  if (any_not_finite(x.data(), x.size())) return not_finite(x);
  if (!x.empty()) std::memcpy(bytes.data(), x.data(), bytes.size());
  return {};
}
result<void> decode_plain(std::span<const std::byte> bytes, std::span<float> x) {
  if (bytes.size() != plain_bytes(x.size()))
    return wrong_length(bytes.size(), plain_bytes(x.size()), x.size());
  if (!x.empty()) std::memcpy(x.data(), bytes.data(), bytes.size());
  if (any_not_finite(x.data(), x.size())) return failure{"a received value is not finite"};
  return {};
}

constexpr row rows[] = {
    {plain_bytes, encode_plain, decode_plain},
    {float16_bytes, encode_float16, decode_float16},
    {bfloat16_bytes, encode_bfloat16, decode_bfloat16},
    {uniform8_bytes, encode_uniform8, decode_uniform8},
    {blockwise8_bytes, encode_blockwise8, decode_blockwise8},
};

const row& row_for(codec which, std::size_t n) {
  const auto index = static_cast<std::size_t>(codec_for(which, n));
  SHOAL_CHECK(index < std::size(rows), "the codec writes every value");
  return rows[index];
}

} // namespace

std::string_view to_string(codec which) {
  constexpr std::string_view names[] = {"none",       "float16",       "bfloat16", "uniform8",
                                        "blockwise8", "size_adaptive", "top_k"};
  SHOAL_CHECK(static_cast<std::size_t>(which) < std::size(names), "the codec is in the enum");
  return names[static_cast<std::size_t>(which)];
}

result<codec> parse_codec(std::string_view name) {
  std::string why = "'";
  why += name;
  why += "' is not a codec; there are ";
  for (const codec which : all_codecs) {
    if (to_string(which) == name) return which;
    if (which != all_codecs[0]) why += ", ";
    why += to_string(which);
  }
  return failure{why};
}

codec codec_for(codec which, std::size_t n) {
  if (which != codec::size_adaptive) return which;
  return n >= size_adaptive_threshold ? codec::blockwise8 : codec::float16;
}

double largest_loss(codec which) {
  switch (which) {
  case codec::none:
    return 0;
  case codec::float16:
    return 0x1p-11;
  case codec::bfloat16:
    return 0x1p-8;
  case codec::uniform8:
    return 2;
  case codec::blockwise8:
  case codec::size_adaptive:
    return 0.9 / 128 + 0x1p-22;
  case codec::top_k:
    return 1;
  }
  return 2;
}

double smallest_loss(codec which) {
  return which == codec::float16 || which == codec::size_adaptive ? 0x1p-25 : 0x1p-134;
}

double largest_value(codec which) {
  return which == codec::float16 || which == codec::size_adaptive
             ? 65504
             : std::numeric_limits<double>::infinity();
}

std::size_t encoded_bytes(codec which, std::size_t n) {
  return row_for(which, n).bytes(n);
}

result<std::vector<std::byte>> encode(codec which, std::span<const float> x) {
  const row& how = row_for(which, x.size());
  std::vector<std::byte> bytes(how.bytes(x.size()));
  if (auto done = how.encode(x, bytes); !done) return failure{done.error()};
  return bytes;
}

result<void> encode_into(codec which, std::span<const float> x, std::span<std::byte> bytes) {
  const row& how = row_for(which, x.size());
  SHOAL_CHECK(bytes.size() == how.bytes(x.size()), "the buffer has room for the code");
  return how.encode(x, bytes);
}

result<void> decode(codec which, std::span<const std::byte> bytes, std::span<float> out) {
  return row_for(which, out.size()).decode(bytes, out);
}

} // namespace shoal::kernels
