#include "kernels/learn/tokenizer/unicode.hpp"

#include "kernels/base/check.hpp"

#include <unicode/bytestream.h>
#include <unicode/normalizer2.h>
#include <unicode/stringpiece.h>
#include <unicode/uchar.h>
#include <unicode/uscript.h>

#include <array>
#include <memory>

namespace shoal::learn::unicode {

namespace {

enum flags : std::uint8_t { letter = 1, number = 2, space = 4, punctuation = 8, word = 16 };

std::uint8_t flags_of(char32_t c) {
  const auto point = static_cast<UChar32>(c);
  const auto category = U_GET_GC_MASK(point);
  std::uint8_t out = 0;
  if (category & U_GC_L_MASK) out |= letter;
  if (category & U_GC_N_MASK) out |= number;
  if (u_isUWhiteSpace(point)) out |= space;
  if ((category & U_GC_P_MASK) ||
      (c < 128 &&
       std::string_view("$+<=>^`|~").find(static_cast<char>(c)) != std::string_view::npos))
    out |= punctuation;
  if (u_isUAlphabetic(point) || (category & (U_GC_M_MASK | U_GC_ND_MASK | U_GC_PC_MASK)) ||
      u_hasBinaryProperty(point, UCHAR_JOIN_CONTROL))
    out |= word;
  return out;
}

/// The flags of the first 65,536 code points, which ICU finds more slowly.
const std::uint8_t* table() {
  static const auto flags = [] {
    auto out = std::make_unique<std::array<std::uint8_t, 0x10000>>();
    for (char32_t c = 0; c < out->size(); ++c) (*out)[c] = flags_of(c);
    return out;
  }();
  return flags->data();
}

bool has(char32_t c, std::uint8_t flag) {
  return ((c < 0x10000 ? table()[c] : flags_of(c)) & flag) != 0;
}

const icu::Normalizer2& normalizer_of(form to) {
  UErrorCode status = U_ZERO_ERROR;
  const icu::Normalizer2* out = nullptr;
  switch (to) {
  case form::nfc:
    out = icu::Normalizer2::getNFCInstance(status);
    break;
  case form::nfd:
    out = icu::Normalizer2::getNFDInstance(status);
    break;
  case form::nfkc:
    out = icu::Normalizer2::getNFKCInstance(status);
    break;
  case form::nfkd:
    out = icu::Normalizer2::getNFKDInstance(status);
    break;
  }
  SHOAL_CHECK(U_SUCCESS(status) && out != nullptr, "ICU has its own data");
  return *out;
}

} // namespace

void append(std::string& to, char32_t c) {
  const auto put = [&](char32_t byte) { to.push_back(static_cast<char>(byte)); };
  if (c < 0x80) return put(c);
  if (c < 0x800) {
    put(0xc0 | c >> 6);
  } else {
    if (c < 0x10000) {
      put(0xe0 | c >> 12);
    } else {
      put(0xf0 | c >> 18);
      put(0x80 | (c >> 12 & 0x3f));
    }
    put(0x80 | (c >> 6 & 0x3f));
  }
  put(0x80 | (c & 0x3f));
}

std::u32string decoded(std::string_view text) {
  std::u32string out;
  out.reserve(text.size());
  for_each(text, [&](char32_t c, std::size_t, unsigned) { out.push_back(c); });
  return out;
}

std::string encoded(std::u32string_view text) {
  std::string out;
  out.reserve(3 * text.size());
  for (const auto c : text) append(out, c);
  return out;
}

std::size_t count(std::string_view text) {
  std::size_t out = 0;
  for_each(text, [&](char32_t, std::size_t, unsigned) { ++out; });
  return out;
}

bool is_valid(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const auto one = first_of(text.substr(at));
    if (!one.valid) return false;
    at += one.bytes;
  }
  return true;
}

bool is_letter(char32_t c) {
  return has(c, letter);
}
bool is_number(char32_t c) {
  return has(c, number);
}
bool is_space(char32_t c) {
  return has(c, space);
}
bool is_punctuation(char32_t c) {
  return has(c, punctuation);
}
bool is_word(char32_t c) {
  return has(c, word);
}

int script_of(char32_t c) {
  UErrorCode status = U_ZERO_ERROR;
  return uscript_getScript(static_cast<UChar32>(c), &status);
}

std::string lower(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  std::size_t copied = 0;
  for_each(text, [&](char32_t c, std::size_t at, unsigned bytes) {
    const auto small = static_cast<char32_t>(u_tolower(static_cast<UChar32>(c)));
    if (small == c) return;
    out.append(text.substr(copied, at - copied));
    copied = at + bytes;
    append(out, small);
    if (c == 0x130) append(out, 0x307);
  });
  return out.append(text.substr(copied));
}

std::string normalized(std::string_view text, form to) {
  UErrorCode status = U_ZERO_ERROR;
  std::string out;
  out.reserve(text.size());
  icu::StringByteSink<std::string> sink(&out);
  SHOAL_CHECK(text.size() < (1u << 30), "texts are given in parts");
  normalizer_of(to).normalizeUTF8(
      0, icu::StringPiece(text.data(), static_cast<std::int32_t>(text.size())), sink, nullptr,
      status);
  SHOAL_CHECK(U_SUCCESS(status), "ICU normalizes all texts");
  return out;
}

} // namespace shoal::learn::unicode
