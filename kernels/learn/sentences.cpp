#include "kernels/learn/sentences.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace shoal::learn {

namespace {

bool white(char c) {
  return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\f' || c == '\v';
}

bool continues_character(char c) {
  return (static_cast<unsigned char>(c) & 0xc0U) == 0x80U;
}

/// Bytes of the character at the start of `text`.
std::size_t character_bytes(std::string_view text) {
  std::size_t n = 1;
  while (n < text.size() && continues_character(text[n])) ++n;
  return n;
}

/// The characters of a text, one view each.
std::vector<std::string_view> characters_of(std::string_view text) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    out.push_back(text.substr(0, character_bytes(text)));
    text.remove_prefix(out.back().size());
  }
  return out;
}

} // namespace

std::vector<std::string> split_sentences(std::string_view document, std::string_view ends) {
  const auto marks = characters_of(ends);
  std::vector<std::string> out;
  std::string now;
  const auto finish = [&] {
    if (!now.empty()) out.push_back(std::exchange(now, {}));
  };
  bool space = false;
  for (std::size_t at = 0; at < document.size();) {
    if (white(document[at])) {
      std::size_t lines = 0;
      for (; at < document.size() && white(document[at]); ++at) lines += document[at] == '\n';
      if (lines > 1) finish();
      space = true;
      continue;
    }
    const auto character = document.substr(at, character_bytes(document.substr(at)));
    if (space && !now.empty()) now += ' ';
    space = false;
    now += character;
    at += character.size();
    const bool mark = std::find(marks.begin(), marks.end(), character) != marks.end();
    if (mark && (character.size() > 1 || at == document.size() || white(document[at]))) finish();
  }
  finish();
  return out;
}

std::string_view cut_utf8(std::string_view text, std::size_t most) noexcept {
  if (text.size() <= most) return text;
  while (most > 0 && continues_character(text[most])) --most;
  return text.substr(0, most);
}

} // namespace shoal::learn
