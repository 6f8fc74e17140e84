#include "kernels/learn/tokenizer/split.hpp"

#include "kernels/learn/tokenizer/unicode.hpp"

#include <utility>

namespace shoal::learn {

namespace {

using piece = split_text::piece;

/// Cuts each piece: `cutter(text, cut)` calls `cut(at)` with ascending offsets within the piece.
template <class Cutter>
void cut_pieces(split_text& text, Cutter cutter) {
  std::vector<piece> out;
  out.reserve(text.pieces.size());
  for (const auto& each : text.pieces) {
    std::size_t begin = each.begin;
    cutter(text.at(each), [&](std::size_t offset) {
      const auto at = each.begin + offset;
      if (at > begin && at < each.end) out.push_back({std::exchange(begin, at), at});
    });
    if (begin < each.end) out.push_back({begin, each.end});
  }
  text.pieces = std::move(out);
}

/// Writes each piece anew: `write(old, is_first, out)` appends to `out`.
template <class Write>
void rewrite_pieces(split_text& text, Write write) {
  split_text out;
  out.text.reserve(text.text.size() + 3 * text.pieces.size());
  out.pieces.reserve(text.pieces.size());
  bool first = true;
  for (const auto& each : text.pieces) {
    const auto begin = out.text.size();
    write(text.at(each), std::exchange(first, false), out.text);
    if (out.text.size() > begin) out.pieces.push_back({begin, out.text.size()});
  }
  text = std::move(out);
}

void metaspace(const splitter& how, split_text& text, bool is_first) {
  rewrite_pieces(text, [&](std::string_view old, bool first, std::string& out) {
    const bool wanted = how.prepend == splitter::prefix::always ||
                        (how.prepend == splitter::prefix::first && first && is_first);
    if (wanted && !old.starts_with(' ') && !old.starts_with(how.mark)) out.append(how.mark);
    for (;;) {
      const auto at = old.find(' ');
      if (at == std::string_view::npos) break;
      out.append(old.substr(0, at)).append(how.mark);
      old.remove_prefix(at + 1);
    }
    out.append(old);
  });
  if (!how.cut) return;
  cut_pieces(text, [&](std::string_view old, auto cut) {
    for (auto at = old.find(how.mark); at != std::string_view::npos;
         at = old.find(how.mark, at + how.mark.size()))
      cut(at);
  });
}

/// Cuts around each code point that `apart` holds for. Runs of them stay whole unless `each`.
template <class Apart>
void isolate(split_text& text, bool each, Apart apart) {
  cut_pieces(text, [&](std::string_view old, auto cut) {
    bool inside = false;
    unicode::for_each(old, [&](char32_t c, std::size_t at, unsigned) {
      const bool now = apart(c);
      if (now != inside || (now && each)) cut(at);
      inside = now;
    });
  });
}

enum class word_class : std::uint8_t { letter, number, space, other };

word_class class_of(char32_t c) {
  if (unicode::is_letter(c)) return word_class::letter;
  if (unicode::is_number(c)) return word_class::number;
  return unicode::is_space(c) ? word_class::space : word_class::other;
}

/// The length of the contraction at the beginning of `text`: 's, 't, 're, 've, 'm, 'll, 'd.
std::size_t contraction(std::string_view text) {
  for (const std::string_view each : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"})
    if (text.starts_with(each)) return each.size();
  return 0;
}

/// The length of the first word of `text`, as GPT-2's pattern has it. A word is a contraction, or a
/// run of one class with at most one space before it. White space before a word is a word up to
/// its last character, and white space at the end is one.
std::size_t first_word(std::string_view text) {
  if (const auto length = contraction(text); length > 0) return length;
  const auto run = [&](std::size_t at, word_class of) {
    while (at < text.size()) {
      const auto one = unicode::first_of(text.substr(at));
      if (class_of(one.value) != of) break;
      at += one.bytes;
    }
    return at;
  };
  const std::size_t skip = text.front() == ' ' && text.size() > 1 ? 1 : 0;
  if (const auto of = class_of(unicode::first_of(text.substr(skip)).value); of != word_class::space)
    return run(skip, of);
  std::size_t at = 0, last = 0;
  while (at < text.size()) {
    const auto one = unicode::first_of(text.substr(at));
    if (class_of(one.value) != word_class::space) break;
    last = std::exchange(at, at + one.bytes);
  }
  return at == text.size() || last == 0 ? at : last;
}

void byte_level(const splitter& how, split_text& text) {
  if (how.add_prefix_space)
    rewrite_pieces(text, [](std::string_view old, bool, std::string& out) {
      if (!old.starts_with(' ')) out.push_back(' ');
      out.append(old);
    });
  if (how.cut)
    cut_pieces(text, [](std::string_view old, auto cut) {
      for (std::size_t at = 0; at < old.size();) cut(at += first_word(old.substr(at)));
    });
  const auto& characters = byte_characters();
  rewrite_pieces(text, [&](std::string_view old, bool, std::string& out) {
    for (const char c : old) unicode::append(out, characters[static_cast<unsigned char>(c)]);
  });
}

void whitespace(split_text& text) {
  isolate(text, false, unicode::is_space);
  std::erase_if(text.pieces, [&](const piece& each) {
    return unicode::is_space(unicode::first_of(text.at(each)).value);
  });
}

} // namespace

split_text split(std::string text, std::span<const splitter> splitters, bool is_first) {
  split_text out{std::move(text), {}};
  if (!out.text.empty()) out.pieces.push_back({0, out.text.size()});
  for (const auto& each : splitters) switch (each.kind) {
    case splitter_kind::metaspace:
      metaspace(each, out, is_first);
      break;
    case splitter_kind::digits:
      isolate(out, each.individual, unicode::is_number);
      break;
    case splitter_kind::punctuation:
      isolate(out, true, unicode::is_punctuation);
      break;
    case splitter_kind::byte_level:
      byte_level(each, out);
      break;
    case splitter_kind::whitespace:
      whitespace(out);
      break;
    }
  return out;
}

const std::array<char32_t, 256>& byte_characters() {
  static const auto characters = [] {
    std::array<char32_t, 256> out{};
    char32_t next = 0x100;
    for (char32_t b = 0; b < 256; ++b) {
      const bool printable = (b >= 0x21 && b <= 0x7e) || (b >= 0xa1 && b <= 0xac) || b >= 0xae;
      out[b] = printable ? b : next++;
    }
    return out;
  }();
  return characters;
}

int byte_of_character(char32_t c) {
  static const auto bytes = [] {
    std::array<std::int16_t, 0x200> out{};
    out.fill(-1);
    for (int b = 0; b < 256; ++b)
      out[byte_characters()[static_cast<std::size_t>(b)]] = static_cast<std::int16_t>(b);
    return out;
  }();
  return c < bytes.size() ? bytes[c] : -1;
}

} // namespace shoal::learn
