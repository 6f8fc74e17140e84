// Fields of lines of text: parts between separators, numbers, and bytes as hexadecimal digits.
#pragma once

#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <vector>

namespace shoal {

/// The parts of `text` between the separators: one more than there are separators.
inline std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> out;
  for (;;) {
    const auto end = text.find(separator);
    out.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return out;
    text.remove_prefix(end + 1);
  }
}

/// The number that the whole of `text` is: decimal, without spaces and without '+'. Empty for any
/// other text, and for a number that a Number cannot hold. A floating-point number may be inf or
/// nan.
template <class Number>
std::optional<Number> number_of(std::string_view text) {
  Number out{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return out;
}

/// Sets `into` to number_of(`text`). False, and `into` is as before, if that is empty.
template <class Number>
bool read_number(std::string_view text, Number& into) {
  const auto number = number_of<Number>(text);
  if (number) into = *number;
  return number.has_value();
}

/// Two lower-case digits for each byte of `what`, in the order in which the bytes lie in memory.
template <class T>
std::string hex_of(const T& what) {
  static_assert(std::is_trivially_copyable_v<T>);
  constexpr std::string_view digits = "0123456789abcdef";
  std::string out;
  out.reserve(2 * sizeof what);
  const auto* bytes = reinterpret_cast<const unsigned char*>(&what);
  for (std::size_t i = 0; i < sizeof what; ++i) {
    out += digits[bytes[i] >> 4u];
    out += digits[bytes[i] & 15u];
  }
  return out;
}

/// The reverse of hex_of(). False if `text` has another length, or a character that is no
/// lower-case digit.
template <class T>
bool read_hex(std::string_view text, T& into) {
  static_assert(std::is_trivially_copyable_v<T>);
  if (text.size() != 2 * sizeof into) return false;
  const auto digit = [&](std::size_t i) {
    const char c = text[i];
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
  };
  auto* bytes = reinterpret_cast<unsigned char*>(&into);
  for (std::size_t i = 0; i < sizeof into; ++i) {
    const int high = digit(2 * i), low = digit(2 * i + 1);
    if (high < 0 || low < 0) return false;
    bytes[i] = static_cast<unsigned char>(16 * high + low);
  }
  return true;
}

} // namespace shoal
