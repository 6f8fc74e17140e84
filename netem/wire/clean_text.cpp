#include "netem/wire/clean_text.hpp"

#include <cstdint>

namespace shoal::netem::wire {

namespace {

struct character {
  std::size_t bytes = 0; // 0: no valid UTF-8
  std::uint32_t code = 0;
};

character first_of(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto lead = byte(0);
  if (lead < 0x80) return {1, lead};
  const std::size_t size = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < size) return {};
  std::uint32_t code = lead & (0xFFu >> (size + 1));
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3F);
  }
  // Longer forms than necessary, halves of UTF-16 pairs, and codes beyond the last are invalid.
  constexpr std::uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  if (code < least[size] || (code >= 0xD800 && code < 0xE000) || code > 0x10FFFF) return {};
  return {size, code};
}

bool is_plain(std::uint32_t code) {
  return code >= 0x20 && (code < 0x7F || code > 0x9F) && (code < 0x2028 || code > 0x202E) &&
         (code < 0x2066 || code > 0x2069) && code != 0x200E && code != 0x200F && code != 0x061C &&
         code != 0xFEFF;
}

} // namespace

std::string clean_text(std::string_view text, std::size_t most) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string out;
  while (!text.empty()) {
    const auto next = first_of(text);
    const auto size = next.bytes == 0 ? 1 : next.bytes;
    std::string piece;
    if (next.bytes > 0 && is_plain(next.code))
      piece = text.substr(0, size);
    else
      for (const char each : text.substr(0, size)) {
        const auto byte = static_cast<unsigned char>(each);
        piece += "\\x";
        piece += digits[byte >> 4];
        piece += digits[byte & 15];
      }
    if (out.size() + piece.size() > most) return out + "...";
    out += piece;
    text.remove_prefix(size);
  }
  return out;
}

} // namespace shoal::netem::wire
