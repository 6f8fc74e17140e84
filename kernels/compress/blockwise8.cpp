#include "kernels/compress/blockwise8.hpp"

#include "kernels/base/check.hpp"
#include "kernels/compress/blockwise8_ranks.hpp"
#include "kernels/compress/look_up.hpp"
#include "kernels/compress/wire.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace shoal::kernels {

namespace {

constexpr auto magnitudes = blockwise8_magnitudes<0>();
constexpr auto unsigned_values = blockwise8_magnitudes<1>();

constexpr auto values = [] {
  std::array<float, 256> out{};
  for (std::size_t rank = 0; rank < 128; ++rank) {
    out[blockwise8_zero - rank] = rank == 0 ? 0.0F : -magnitudes[rank];
    out[blockwise8_zero + rank] = magnitudes[rank];
  }
  out[255] = magnitudes[128];
  return out;
}();

SHOAL_WIDER std::uint32_t largest_magnitude(const float* x, std::size_t n) {
  std::uint32_t out = 0;
  for (std::size_t i = 0; i < n; ++i) out = std::max(out, magnitude_bits(x[i]));
  return out;
}

/// For floats that are not negative, NaN included, larger bits are larger numbers. Negative floats,
/// -0 included, have larger bits than all of these.
SHOAL_WIDER std::uint32_t largest_bits(const float* x, std::size_t n) {
  std::uint32_t out = 0;
  for (std::size_t i = 0; i < n; ++i) out = std::max(out, std::bit_cast<std::uint32_t>(x[i]));
  return out;
}

failure not_unsigned(std::span<const float> x) {
  for (const float value : x)
    if (!std::isfinite(value)) return not_finite(x);
  return failure{"a value is negative, which the unsigned code cannot represent"};
}

std::size_t blocks_of(std::size_t n) {
  return (blockwise8_bytes(n) - n) / sizeof(float);
}

failure bad_absmax(std::size_t b) {
  return failure{"the largest magnitude of block " + std::to_string(b) +
                 " is not a finite positive number or 0"};
}

} // namespace

const std::array<float, 256>& blockwise8_values() {
  return values;
}
const std::array<float, 256>& blockwise8_unsigned_values() {
  return unsigned_values;
}

namespace {

struct coding {
  std::uint32_t (*largest)(
      // As bits: from not_finite_from on the block cannot be encoded.
      const float*, std::size_t);
  void (*quantize)(const float*, std::size_t, float, std::uint8_t*);
  failure (*refusal)(std::span<const float>);
  std::uint32_t zero;
  const std::array<float, 256>* values;
};

constexpr coding as_signed{largest_magnitude, blockwise8_quantize, not_finite, blockwise8_zero,
                           &values};
constexpr coding as_unsigned{largest_bits, blockwise8_quantize_unsigned, not_unsigned, 0,
                             &unsigned_values};

result<void> encode_with(const coding& how, std::span<const float> x, std::span<std::byte> bytes) {
  SHOAL_CHECK(bytes.size() == blockwise8_bytes(x.size()), "the buffer has room for the code");
  std::byte* const codes = bytes.data() + blocks_of(x.size()) * sizeof(float);
  std::array<std::uint8_t, blockwise8_block> code;
  for (std::size_t b = 0; b < blocks_of(x.size()); ++b) {
    const auto block = x.subspan(b * blockwise8_block,
                                 std::min(blockwise8_block, x.size() - b * blockwise8_block));
    const std::uint32_t largest = how.largest(block.data(), block.size());
    if (largest >= not_finite_from) return how.refusal(x);
    store(bytes.data(), b, largest);
    if (largest == 0)
      code.fill(static_cast<std::uint8_t>(how.zero));
    else
      how.quantize(block.data(), block.size(), std::bit_cast<float>(largest), code.data());
    std::memcpy(codes + b * blockwise8_block, code.data(), block.size());
  }
  return {};
}

result<void> decode_with(const coding& how, std::span<const std::byte> bytes, std::span<float> x) {
  if (bytes.size() != blockwise8_bytes(x.size()))
    return wrong_length(bytes.size(), blockwise8_bytes(x.size()), x.size());
  const std::byte* const codes = bytes.data() + blocks_of(x.size()) * sizeof(float);
  std::array<float, 256> scaled;
  for (std::size_t b = 0; b < blocks_of(x.size()); ++b) {
    const auto absmax = load<float>(bytes.data(), b);
    if (std::bit_cast<std::uint32_t>(absmax) >=
        not_finite_from) // a negative absmax has larger bits still
      return bad_absmax(b);
    for (std::size_t c = 0; c < scaled.size(); ++c) scaled[c] = (*how.values)[c] * absmax;
    const std::size_t begin = b * blockwise8_block,
                      end = std::min(x.size(), begin + blockwise8_block);
    look_up(scaled, codes + begin, x.subspan(begin, end - begin));
  }
  return {};
}

result<void> encode_reference_with(const coding& how, std::span<const float> x,
                                   std::span<std::byte> bytes) {
  const auto& table = *how.values;
  SHOAL_CHECK(bytes.size() == blockwise8_bytes(x.size()), "the buffer has room for the code");
  std::byte* const codes = bytes.data() + blocks_of(x.size()) * sizeof(float);
  for (std::size_t b = 0; b < blocks_of(x.size()); ++b) {
    const std::size_t end = std::min(x.size(), (b + 1) * blockwise8_block);
    float absmax = 0;
    for (std::size_t i = b * blockwise8_block; i < end; ++i) {
      if (!std::isfinite(x[i]) || (how.zero == 0 && std::signbit(x[i]))) return how.refusal(x);
      absmax = std::max(absmax, std::fabs(x[i]));
    }
    store(bytes.data(), b, absmax);
    for (std::size_t i = b * blockwise8_block; i < end; ++i) {
      const double y = absmax == 0 ? 0 : x[i] / absmax;
      std::size_t best = how.zero;
      for (std::size_t c = 0; c < table.size(); ++c) {
        const double distance = std::fabs(table[c] - y), least = std::fabs(table[best] - y);
        if (distance < least || (distance == least && std::fabs(table[c]) < std::fabs(table[best])))
          best = c;
      }
      store(codes, i, static_cast<std::uint8_t>(best));
    }
  }
  return {};
}

result<void> decode_reference_with(const coding& how, std::span<const std::byte> bytes,
                                   std::span<float> x) {
  if (bytes.size() != blockwise8_bytes(x.size()))
    return wrong_length(bytes.size(), blockwise8_bytes(x.size()), x.size());
  const std::byte* const codes = bytes.data() + blocks_of(x.size()) * sizeof(float);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto absmax = load<float>(bytes.data(), i / blockwise8_block);
    if (!std::isfinite(absmax) || std::signbit(absmax)) return bad_absmax(i / blockwise8_block);
    x[i] = (*how.values)[load<std::uint8_t>(codes, i)] * absmax;
  }
  return {};
}

} // namespace

result<void> encode_blockwise8(std::span<const float> x, std::span<std::byte> bytes) {
  return encode_with(as_signed, x, bytes);
}
result<void> decode_blockwise8(std::span<const std::byte> bytes, std::span<float> x) {
  return decode_with(as_signed, bytes, x);
}
result<void> encode_blockwise8_reference(std::span<const float> x, std::span<std::byte> bytes) {
  return encode_reference_with(as_signed, x, bytes);
}
result<void> decode_blockwise8_reference(std::span<const std::byte> bytes, std::span<float> x) {
  return decode_reference_with(as_signed, bytes, x);
}

result<void> encode_blockwise8_unsigned(std::span<const float> x, std::span<std::byte> bytes) {
  return encode_with(as_unsigned, x, bytes);
}
result<void> decode_blockwise8_unsigned(std::span<const std::byte> bytes, std::span<float> x) {
  return decode_with(as_unsigned, bytes, x);
}
result<void> encode_blockwise8_unsigned_reference(std::span<const float> x,
                                                  std::span<std::byte> bytes) {
  return encode_reference_with(as_unsigned, x, bytes);
}
result<void> decode_blockwise8_unsigned_reference(std::span<const std::byte> bytes,
                                                  std::span<float> x) {
  return decode_reference_with(as_unsigned, bytes, x);
}

} // namespace shoal::kernels
