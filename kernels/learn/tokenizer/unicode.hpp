// UTF-8, and the properties of code points that tokenizers ask for. Bytes that are no UTF-8 count
// as code points U+FFFD, one each.
// Source: ICU 72, Unicode 15.0.
// Thread safety: all functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace shoal::learn::unicode {

inline constexpr char32_t replacement = 0xfffd;

struct code_point {
  char32_t value;
  unsigned bytes; ///< 1 for a byte that is no UTF-8
  bool valid;
};

/// The code point at the beginning of `text`. Overlong forms, surrogates and values above 10FFFF
/// are no UTF-8. Requires: text is not empty.
inline code_point first_of(std::string_view text) noexcept {
  const auto byte = [&](std::size_t i) -> unsigned {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const auto follows = [&](std::size_t i) { return (byte(i) & 0xc0u) == 0x80u; };
  const unsigned lead = byte(0);
  if (lead < 0x80) return {lead, 1, true};
  if (lead >= 0xc2 && lead < 0xe0 && follows(1))
    return {(lead & 0x1fu) << 6 | (byte(1) & 0x3fu), 2, true};
  if (lead >= 0xe0 && lead < 0xf0 && follows(1) && follows(2)) {
    const char32_t value = (lead & 0xfu) << 12 | (byte(1) & 0x3fu) << 6 | (byte(2) & 0x3fu);
    if (value >= 0x800 && (value < 0xd800 || value > 0xdfff)) return {value, 3, true};
  }
  if (lead >= 0xf0 && lead < 0xf5 && follows(1) && follows(2) && follows(3)) {
    const char32_t value =
        (lead & 7u) << 18 | (byte(1) & 0x3fu) << 12 | (byte(2) & 0x3fu) << 6 | (byte(3) & 0x3fu);
    if (value >= 0x10000 && value <= 0x10ffff) return {value, 4, true};
  }
  return {replacement, 1, false};
}

/// Calls `each(value, at, bytes)` for every code point.
template <class Each>
void for_each(std::string_view text, Each each) {
  for (std::size_t at = 0; at < text.size();) {
    const auto one = first_of(text.substr(at));
    each(one.value, at, one.bytes);
    at += one.bytes;
  }
}

/// Requires: a code point, not a surrogate.
void append(std::string& to, char32_t value);
std::u32string decoded(std::string_view text);
std::string encoded(std::u32string_view text);
std::size_t count(std::string_view text);
bool is_valid(std::string_view text);

/// General categories L*, N* and White_Space.
bool is_letter(char32_t c);
bool is_number(char32_t c);
bool is_space(char32_t c);
/// P*, and the ASCII signs $+<=>^`|~.
bool is_punctuation(char32_t c);
/// Alphabetic, M*, Nd, Pc and the joiners: \w of regular expressions.
bool is_word(char32_t c);
/// A number for each script. Inherited and Common have their own.
int script_of(char32_t c);

/// The lower case of each code point alone: no rule looks at its neighbours, so a final sigma is
/// like others. U+0130 becomes two code points.
std::string lower(std::string_view text);

enum class form : std::uint8_t { nfc, nfd, nfkc, nfkd };
/// Bytes that are no UTF-8 become U+FFFD.
std::string normalized(std::string_view text, form to);

} // namespace shoal::learn::unicode
