// The pre-tokenizers: they cut a text into pieces, which the model of a tokenizer never joins.
// Source: huggingface/tokenizers, src/pre_tokenizers; the bytes of ByteLevel: openai/gpt-2,
// src/encoder.py.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::learn {

enum class splitter_kind : std::uint8_t {
  metaspace,   ///< ' ' becomes `mark`, which may also be put in front; cuts before each mark
  digits,      ///< cuts out numbers: each code point of N*, or each run
  punctuation, ///< cuts out each code point of P* and each ASCII sign
  byte_level,  ///< words as GPT-2 cuts them, then each byte as one printable character
  whitespace   ///< cuts at White_Space and drops it
};

struct splitter {
  splitter_kind kind = splitter_kind::metaspace;
  // metaspace
  std::string mark = "\u2581"; ///< one code point
  enum class prefix : std::uint8_t { always, first, never } prepend = prefix::always;
  bool cut = true; ///< whether metaspace cuts, and byte_level looks for words
  // digits
  bool individual = true;
  // byte_level
  bool add_prefix_space = false;
  bool operator==(const splitter&) const = default;
};

/// A text and the pieces of it, in order.
struct split_text {
  struct piece {
    std::size_t begin = 0, end = 0;
  };
  std::string text{};
  std::vector<piece> pieces{}; ///< none is empty
  std::string_view at(const piece& of) const noexcept {
    return std::string_view(text).substr(of.begin, of.end - of.begin);
  }
};

/// `text` as one piece, cut by all splitters. `is_first`: nothing stands before it in the whole
/// text (prefix::first).
split_text split(std::string text, std::span<const splitter> splitters, bool is_first);

/// The printable character of each byte. U+0021 to U+007E, U+00A1 to U+00AC and U+00AE to U+00FF
/// stand for themselves. The other bytes are U+0100, U+0101 and so on in their order.
const std::array<char32_t, 256>& byte_characters();
/// The byte of such a character; -1 for others.
int byte_of_character(char32_t c);

} // namespace shoal::learn
