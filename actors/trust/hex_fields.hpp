// Fields of proofs in lines of text: the bytes of a value as hexadecimal digits.
#pragma once

#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace shoal::actors {

/// The bytes in the order in which they lie in memory.
template <class T>
std::string hex_of(const T& what) {
  static_assert(std::is_trivially_copyable_v<T>);
  constexpr std::string_view digits = "0123456789abcdef";
  std::string out;
  const auto* bytes = reinterpret_cast<const unsigned char*>(&what);
  for (std::size_t i = 0; i < sizeof what; ++i) {
    out += digits[bytes[i] >> 4u];
    out += digits[bytes[i] & 15u];
  }
  return out;
}

inline int hex_digit(char c) {
  return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/// False if `text` has another length, or a character that is no lower-case digit.
template <class T>
bool read_hex(std::string_view text, T& into) {
  static_assert(std::is_trivially_copyable_v<T>);
  if (text.size() != 2 * sizeof into) return false;
  auto* bytes = reinterpret_cast<unsigned char*>(&into);
  for (std::size_t i = 0; i < sizeof into; ++i) {
    const int high = hex_digit(text[2 * i]), low = hex_digit(text[2 * i + 1]);
    if (high < 0 || low < 0) return false;
    bytes[i] = static_cast<unsigned char>(16 * high + low);
  }
  return true;
}

/// The words of a line, between single spaces.
inline std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> out;
  while (!line.empty()) {
    const auto end = line.find(' ') == std::string_view::npos ? line.size() : line.find(' ');
    out.push_back(line.substr(0, end));
    line.remove_prefix(end == line.size() ? end : end + 1);
  }
  return out;
}

} // namespace shoal::actors
