#include "kernels/compress/half.hpp"

#include "kernels/base/check.hpp"
#include "kernels/compress/wire.hpp"

#include <cmath>

namespace shoal::kernels {

namespace {
std::size_t half_bytes(std::size_t n) {
  return n * sizeof(std::uint16_t);
}
} // namespace

result<void> encode_half(const half_format& format, std::span<const float> x,
                         std::span<std::byte> bytes) {
  SHOAL_CHECK(bytes.size() == half_bytes(x.size()), "the buffer has room for the code");
  if (format.encode_all(x.data(), bytes.data(), x.size())) return not_finite(x);
  return {};
}

result<void> decode_half(const half_format& format, std::span<const std::byte> bytes,
                         std::span<float> x) {
  if (bytes.size() != half_bytes(x.size()))
    return wrong_length(bytes.size(), half_bytes(x.size()), x.size());
  if (format.decode_all(bytes.data(), x.data(), x.size())) return failure{format.not_finite_came};
  return {};
}

result<void> encode_half_reference(const half_format& format, std::span<const float> x,
                                   std::span<std::byte> bytes) {
  SHOAL_CHECK(bytes.size() == half_bytes(x.size()), "the buffer has room for the code");
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (!std::isfinite(x[i])) return not_finite(x);
    const double magnitude = std::fabs(double{x[i]});
    // First the value above x, then the nearer one of that and its predecessor.
    std::uint32_t low = 0, high = format.infinity;
    while (high - low > 1) {
      const std::uint32_t middle = (low + high) / 2;
      (format.value_of(middle) <= magnitude ? low : high) = middle;
    }
    if (high < format.infinity) {
      const double below = magnitude - format.value_of(low);
      const double above = format.value_of(high) - magnitude;
      if (above < below || (above == below && high % 2 == 0)) low = high;
    }
    store(bytes.data(), i, static_cast<std::uint16_t>(low | (std::signbit(x[i]) ? 0x8000U : 0U)));
  }
  return {};
}

result<void> decode_half_reference(const half_format& format, std::span<const std::byte> bytes,
                                   std::span<float> x) {
  if (bytes.size() != half_bytes(x.size()))
    return wrong_length(bytes.size(), half_bytes(x.size()), x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::uint32_t b = load<std::uint16_t>(bytes.data(), i);
    if ((b & 0x7fffU) >= format.infinity) return failure{format.not_finite_came};
    x[i] =
        static_cast<float>((b & 0x8000U) != 0 ? -format.value_of(b & 0x7fffU) : format.value_of(b));
  }
  return {};
}

} // namespace shoal::kernels
