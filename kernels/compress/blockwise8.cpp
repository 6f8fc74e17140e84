#include "kernels/compress/blockwise8.hpp"

#include "kernels/base/check.hpp"
#include "kernels/compress/wire.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace shoal::kernels {

namespace {

constexpr std::uint32_t zero_code = 127;

/// 0, the 127 positive midpoints and 1, ascending. An index among them is a rank: code zero_code +
/// rank, or zero_code - rank for negative values.
constexpr auto magnitudes = [] {
  std::array<float, 129> out{};
  std::size_t rank = 1;
  double tens = 1e6; // 10^(6 - i)
  for (int i = 0; i <= 6; ++i, tens /= 10)
    for (int j = 0; j < 1 << i; ++j) {
      // Integers over integers, so that only the division and the conversion round.
      const double twice = 2 << i;
      out[rank++] = static_cast<float>((twice + 9 * (2 * j + 1)) / (10 * twice * tens));
    }
  out[rank] = 1;
  return out;
}();

constexpr auto values = [] {
  std::array<float, 256> out{};
  for (std::size_t rank = 0; rank < 128; ++rank) {
    out[zero_code - rank] = rank == 0 ? 0.0F : -magnitudes[rank];
    out[zero_code + rank] = magnitudes[rank];
  }
  out[255] = magnitudes[128];
  return out;
}();

/// The largest float that is not above the middle between ranks r and r + 1: a float is nearer to
/// rank r + 1 exactly if it is larger.
constexpr float threshold(std::size_t r) {
  const double middle = (double{magnitudes[r]} + double{magnitudes[r + 1]}) / 2;
  const float nearest = static_cast<float>(middle);
  return double{nearest} <= middle
             ? nearest
             : std::bit_cast<float>(std::bit_cast<std::uint32_t>(nearest) - 1); // positive
}

// The rank by one look-up: a float's exponent and the first 6 bits of its fraction name a cell with
// at most one threshold in it. An entry is (rank << 17) + (2^17 - 1 - the threshold's low 17 bits):
// adding the low bits of a float carries into the rank exactly if the float is larger than the
// threshold.
constexpr std::uint32_t low_bits = 17;
constexpr std::uint32_t low_mask = (1U << low_bits) - 1;
constexpr std::uint32_t first_cell = (std::bit_cast<std::uint32_t>(threshold(0)) >> low_bits) - 1;
constexpr std::uint32_t last_cell = std::bit_cast<std::uint32_t>(1.0F) >> low_bits;

constexpr auto cells = [] {
  std::array<std::uint32_t, last_cell - first_cell + 1> out{};
  std::uint32_t rank = 0;
  for (std::uint32_t cell = 0; cell < out.size(); ++cell) {
    out[cell] = rank << low_bits;
    if (rank == 128)
      continue;
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(threshold(rank));
    if (bits >> low_bits == first_cell + cell)
      out[cell] = (rank++ << low_bits) + (low_mask - (bits & low_mask));
  }
  // A cell with two thresholds would leave ranks over.
  return rank == 128 ? out : decltype(out){};
}();
static_assert(cells.back() == 128U << low_bits, "no cell holds two thresholds");

SHOAL_COMPRESS_WIDER std::uint32_t largest_magnitude(const float* x, std::size_t n) {
  std::uint32_t out = 0;
  for (std::size_t i = 0; i < n; ++i)
    out = std::max(out, magnitude_bits(x[i]));
  return out;
}

/// Requires: absmax > 0 and the largest magnitude, so that quotients are at most 1.
SHOAL_COMPRESS_WIDER void quantize(const float* x, std::size_t n, float absmax,
                                   std::uint8_t* code) {
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(x[i] / absmax);
    const std::uint32_t u = bits & 0x7fffffffU;
    const std::uint32_t cell = std::max(u >> low_bits, first_cell) - first_cell;
    const std::uint32_t rank = (cells[cell] + (u & low_mask)) >> low_bits;
    const std::uint32_t negative = 0U - (bits >> 31);
    const std::uint32_t limited = std::min(rank, 128 + negative); // -1 is not among the values
    code[i] = static_cast<std::uint8_t>(zero_code + ((limited ^ negative) - negative));
  }
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

result<void> encode_blockwise8(std::span<const float> x, std::span<std::byte> bytes) {
  SHOAL_CHECK(bytes.size() == blockwise8_bytes(x.size()), "room for what is encoded");
  std::byte* const codes = bytes.data() + blocks_of(x.size()) * sizeof(float);
  std::array<std::uint8_t, blockwise8_block> code;
  for (std::size_t b = 0; b < blocks_of(x.size()); ++b) {
    const auto block = x.subspan(b * blockwise8_block,
                                 std::min(blockwise8_block, x.size() - b * blockwise8_block));
    const std::uint32_t largest = largest_magnitude(block.data(), block.size());
    if (largest >= not_finite_from)
      return not_finite(x);
    store(bytes.data(), b, largest);
    if (largest == 0)
      code.fill(zero_code);
    else
      quantize(block.data(), block.size(), std::bit_cast<float>(largest), code.data());
    std::memcpy(codes + b * blockwise8_block, code.data(), block.size());
  }
  return {};
}

result<void> decode_blockwise8(std::span<const std::byte> bytes, std::span<float> x) {
  if (bytes.size() != blockwise8_bytes(x.size()))
    return wrong_length(bytes.size(), blockwise8_bytes(x.size()), x.size());
  const std::byte* const codes = bytes.data() + blocks_of(x.size()) * sizeof(float);
  std::array<float, 256> scaled;
  for (std::size_t b = 0; b < blocks_of(x.size()); ++b) {
    const auto absmax = load<float>(bytes.data(), b);
    if (std::bit_cast<std::uint32_t>(absmax) >= not_finite_from) // with the sign it is larger still
      return bad_absmax(b);
    for (std::size_t c = 0; c < scaled.size(); ++c)
      scaled[c] = values[c] * absmax;
    const std::size_t end = std::min(x.size(), (b + 1) * blockwise8_block);
    for (std::size_t i = b * blockwise8_block; i < end; ++i)
      x[i] = scaled[std::to_integer<std::size_t>(codes[i])];
  }
  return {};
}

result<void> encode_blockwise8_reference(std::span<const float> x, std::span<std::byte> bytes) {
  SHOAL_CHECK(bytes.size() == blockwise8_bytes(x.size()), "room for what is encoded");
  std::byte* const codes = bytes.data() + blocks_of(x.size()) * sizeof(float);
  for (std::size_t b = 0; b < blocks_of(x.size()); ++b) {
    const std::size_t end = std::min(x.size(), (b + 1) * blockwise8_block);
    float absmax = 0;
    for (std::size_t i = b * blockwise8_block; i < end; ++i) {
      if (!std::isfinite(x[i]))
        return not_finite(x);
      absmax = std::max(absmax, std::fabs(x[i]));
    }
    store(bytes.data(), b, absmax);
    for (std::size_t i = b * blockwise8_block; i < end; ++i) {
      const double y = absmax == 0 ? 0 : x[i] / absmax;
      std::size_t best = zero_code;
      for (std::size_t c = 0; c < values.size(); ++c) {
        const double distance = std::fabs(values[c] - y), least = std::fabs(values[best] - y);
        if (distance < least ||
            (distance == least && std::fabs(values[c]) < std::fabs(values[best])))
          best = c;
      }
      store(codes, i, static_cast<std::uint8_t>(best));
    }
  }
  return {};
}

result<void> decode_blockwise8_reference(std::span<const std::byte> bytes, std::span<float> x) {
  if (bytes.size() != blockwise8_bytes(x.size()))
    return wrong_length(bytes.size(), blockwise8_bytes(x.size()), x.size());
  const std::byte* const codes = bytes.data() + blocks_of(x.size()) * sizeof(float);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto absmax = load<float>(bytes.data(), i / blockwise8_block);
    if (!std::isfinite(absmax) || std::signbit(absmax))
      return bad_absmax(i / blockwise8_block);
    x[i] = values[load<std::uint8_t>(codes, i)] * absmax;
  }
  return {};
}

} // namespace shoal::kernels
