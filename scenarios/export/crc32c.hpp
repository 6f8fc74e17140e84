// CRC-32C (Castagnoli), as files of TensorFlow carry it.
// Source: RFC 3720, appendix B.4: the check value of "123456789" is 0xE3069283.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace shoal::scenarios {

inline std::uint32_t crc32c(std::string_view bytes) {
  static const auto table = [] {
    std::array<std::uint32_t, 256> out{};
    for (std::uint32_t i = 0; i < 256; ++i) {
      std::uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit) value = value >> 1 ^ (value & 1 ? 0x82f63b78U : 0);
      out[i] = value;
    }
    return out;
  }();
  std::uint32_t crc = ~0U;
  for (const char c : bytes) crc = crc >> 8 ^ table[(crc ^ static_cast<unsigned char>(c)) & 255];
  return ~crc;
}

} // namespace shoal::scenarios
