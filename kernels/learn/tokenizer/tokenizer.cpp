#include "kernels/learn/tokenizer/tokenizer.hpp"

#include "kernels/base/check.hpp"
#include "kernels/learn/tokenizer/unicode.hpp"

#include <algorithm>
#include <bitset>
#include <charconv>
#include <utility>

namespace shoal::learn {

namespace {

std::size_t tokens_in(const std::vector<template_part>& parts) {
  std::size_t out = 0;
  for (const auto& part : parts)
    if (part.what == template_part::kind::token) out += part.ids.size();
  return out;
}

/// The white space at the beginning or end of `text`, in bytes.
std::size_t spaces_at_front(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const auto one = unicode::first_of(text.substr(at));
    if (!unicode::is_space(one.value)) break;
    at += one.bytes;
  }
  return at;
}

/// The last code point of `text` and its bytes. Requires: text is not empty.
unicode::code_point last_of(std::string_view text) {
  for (std::size_t back = 1; back <= std::min<std::size_t>(4, text.size()); ++back) {
    const auto one = unicode::first_of(text.substr(text.size() - back));
    if (one.bytes == back) return one;
  }
  return {unicode::replacement, 1, false};
}

std::size_t spaces_at_back(std::string_view text) {
  const auto whole = text.size();
  while (!text.empty()) {
    const auto one = last_of(text);
    if (!unicode::is_space(one.value)) break;
    text.remove_suffix(one.bytes);
  }
  return whole - text.size();
}

void sort_longest_first(auto& patterns) {
  std::stable_sort(patterns.begin(), patterns.end(),
                   [](const auto& a, const auto& b) { return a.text.size() > b.text.size(); });
}

/// The byte of a token '<0xE0>'; -1 for others.
int byte_of_token(std::string_view text) {
  if (text.size() != 6 || !text.starts_with("<0x") || text.back() != '>') return -1;
  int out = -1;
  const auto [end, error] = std::from_chars(text.data() + 3, text.data() + 5, out, 16);
  return error == std::errc{} && end == text.data() + 5 ? out : -1;
}

/// The template of texts without one.
const std::vector<template_part>& plain_single() {
  static const std::vector<template_part> parts{{template_part::kind::first, {}, {}, 0}};
  return parts;
}
const std::vector<template_part>& plain_pair() {
  static const std::vector<template_part> parts{{template_part::kind::first, {}, {}, 0},
                                                {template_part::kind::second, {}, {}, 1}};
  return parts;
}

} // namespace

result<tokenizer> tokenizer::make(tokenizer_description description) {
  tokenizer out;
  if (auto* pieces = std::get_if<unigram_description>(&description.model)) {
    auto model = unigram::make(std::move(*pieces));
    if (!model) return failure{"the model Unigram " + model.error()};
    out.model_ = std::make_unique<unigram>(*std::move(model));
  } else {
    auto model = byte_pairs::make(std::move(std::get<byte_pairs_description>(description.model)));
    if (!model) return failure{"the model BPE " + model.error()};
    out.model_ = std::make_unique<byte_pairs>(*std::move(model));
  }
  description.model = {};

  const auto& tokens = out.model_->tokens();
  out.texts_ = tokens.texts();
  const auto of_model = out.texts_.size();
  const auto refuse = [&](const added_token& token, const std::string& why) {
    return failure{"the added token '" + token.content + "' with number " +
                   std::to_string(token.id) + " " + why};
  };
  std::vector<std::uint8_t> known(of_model, 1);
  for (const auto& token : description.added) {
    if (token.content.empty()) return refuse(token, "is empty");
    if (token.id < 0 || token.id >= static_cast<token_id>(of_model + description.added.size()))
      return refuse(token, "leaves a gap: the vocabulary has " + std::to_string(of_model) +
                               " tokens before added ones");
    const auto id = static_cast<std::size_t>(token.id);
    if (id >= out.texts_.size()) {
      out.texts_.resize(id + 1);
      known.resize(id + 1);
    }
    if (known[id] && out.texts_[id] != token.content)
      return refuse(token, "has the number of '" + out.texts_[id] + "'");
    out.texts_[id] = token.content;
    known[id] = 1;
  }
  if (const auto gap = std::find(known.begin(), known.end(), 0); gap != known.end())
    return failure{"no token has the number " + std::to_string(gap - known.begin())};

  out.special_.resize(out.texts_.size());
  for (std::size_t i = 0; i < description.added.size(); ++i) {
    const auto& token = description.added[i];
    if (token.special) out.special_[static_cast<std::size_t>(token.id)] = 1;
    if (!token.in_texts) continue;
    if (!token.normalized)
      out.patterns_.push_back({token.content, i});
    else if (auto text = normalize(token.content, description.normalizer); !text.empty())
      out.normalized_patterns_.push_back({std::move(text), i});
  }
  sort_longest_first(out.patterns_);
  sort_longest_first(out.normalized_patterns_);
  for (const auto* parts : {&description.single, &description.pair})
    for (const auto& part : *parts)
      for (const auto id : part.ids)
        if (id < 0 || id >= out.vocabulary())
          return failure{"the template has a token with number " + std::to_string(id) +
                         "; the vocabulary has " + std::to_string(out.vocabulary()) + " tokens"};
  out.description_ = std::make_unique<tokenizer_description>(std::move(description));
  return out;
}

const std::string& tokenizer::token(token_id id) const {
  SHOAL_CHECK(id >= 0 && id < vocabulary(), "a token is in the vocabulary");
  return texts_[static_cast<std::size_t>(id)];
}

std::optional<token_id> tokenizer::find(std::string_view token) const {
  for (const auto& added : description_->added)
    if (added.content == token) return added.id;
  return model_->tokens().find(token);
}

bool tokenizer::is_special(token_id id) const {
  return special_[static_cast<std::size_t>(id)] != 0;
}

std::vector<tokenizer::segment> tokenizer::cut_out(std::string_view text,
                                                   const std::vector<pattern>& patterns) const {
  std::vector<segment> out;
  std::bitset<256> begins;
  for (const auto& each : patterns) begins.set(static_cast<unsigned char>(each.text.front()));
  std::size_t done = 0; // all before it is in `out`
  for (std::size_t at = 0; !patterns.empty() && at < text.size();) {
    if (!begins.test(static_cast<unsigned char>(text[at]))) {
      ++at;
      continue;
    }
    const auto found = std::find_if(patterns.begin(), patterns.end(), [&](const pattern& each) {
      return text.substr(at).starts_with(each.text);
    });
    if (found == patterns.end()) {
      ++at;
      continue;
    }
    const auto& token = description_->added[found->added];
    auto begin = at, end = at + found->text.size();
    at = end;
    const bool in_word =
        token.single_word &&
        ((begin > 0 && unicode::is_word(last_of(text.substr(0, begin)).value)) ||
         (end < text.size() && unicode::is_word(unicode::first_of(text.substr(end)).value)));
    if (in_word || begin < done) continue;
    if (token.strip_left) begin -= spaces_at_back(text.substr(done, begin - done));
    if (token.strip_right) end += spaces_at_front(text.substr(end));
    if (done < begin) out.push_back({done, begin, std::nullopt});
    out.push_back({begin, end, token.id});
    done = end;
    at = std::max(at, end);
  }
  if (done < text.size()) out.push_back({done, text.size(), std::nullopt});
  return out;
}

/// Calls `token(id)` and `rest(normalized text, is first)` in the order of the text.
template <class Token, class Rest>
void tokenizer::for_each_part(std::string_view text, Token token, Rest rest) const {
  for (const auto& outer : cut_out(text, patterns_)) {
    if (outer.token) {
      token(*outer.token);
      continue;
    }
    const auto normal =
        normalize(text.substr(outer.begin, outer.end - outer.begin), description_->normalizer);
    for (const auto& inner : cut_out(normal, normalized_patterns_)) {
      if (inner.token)
        token(*inner.token);
      else
        rest(normal.substr(inner.begin, inner.end - inner.begin),
             outer.begin == 0 && inner.begin == 0);
    }
  }
}

std::vector<token_id> tokenizer::encode(std::string_view text) const {
  std::vector<token_id> out;
  for_each_part(
      text, [&](token_id id) { out.push_back(id); },
      [&](std::string rest, bool is_first) {
        model_->encode(split(std::move(rest), description_->splitters, is_first), out);
      });
  return out;
}

std::vector<std::string> tokenizer::pieces(std::string_view text) const {
  std::vector<std::string> out;
  for_each_part(
      text, [](token_id) {},
      [&](std::string rest, bool is_first) {
        const auto cut = split(std::move(rest), description_->splitters, is_first);
        for (const auto& piece : cut.pieces) out.emplace_back(cut.at(piece));
      });
  return out;
}

encoding tokenizer::fill(const std::vector<template_part>& parts, std::span<const token_id> first,
                         std::span<const token_id> second,
                         std::span<const std::int64_t> words) const {
  encoding out;
  const auto add = [&](std::span<const token_id> ids, std::uint8_t type, bool special) {
    out.ids.insert(out.ids.end(), ids.begin(), ids.end());
    out.types.insert(out.types.end(), ids.size(), type);
    out.special.insert(out.special.end(), ids.size(), special ? 1 : 0);
  };
  for (const auto& part : parts) {
    const bool text = part.what != template_part::kind::token;
    add(!text                                     ? part.ids
        : part.what == template_part::kind::first ? first
                                                  : second,
        part.type, !text);
    if (text && part.what == template_part::kind::first)
      out.words.insert(out.words.end(), words.begin(), words.end());
    else if (!words.empty())
      out.words.insert(out.words.end(), text ? second.size() : part.ids.size(), -1);
  }
  return out;
}

std::size_t tokenizer::added_to_single() const noexcept {
  return tokens_in(description_->single);
}
std::size_t tokenizer::added_to_pair() const noexcept {
  return tokens_in(description_->pair);
}

encoding tokenizer::encode_single(std::string_view text, std::size_t most) const {
  SHOAL_CHECK(most == 0 || most >= added_to_single(), "the template fits");
  auto ids = encode(text);
  if (most > 0) ids.resize(std::min(ids.size(), most - added_to_single()));
  const auto& parts = description_->single;
  return fill(parts.empty() ? plain_single() : parts, ids, {}, {});
}

encoding tokenizer::encode_pair(std::string_view a, std::string_view b, std::size_t most) const {
  SHOAL_CHECK(most == 0 || most >= added_to_pair(), "the template fits");
  auto first = encode(a), second = encode(b);
  if (const auto room = most - added_to_pair(); most > 0 && first.size() + second.size() > room) {
    // The shorter text stays whole if it fits into one half. The second half may be one longer.
    auto& shorter = first.size() > second.size() ? second : first;
    auto& longer = first.size() > second.size() ? first : second;
    const auto half = room / 2;
    if (shorter.size() > half) {
      shorter.resize(half);
      longer.resize(room - half);
    } else {
      longer.resize(room - shorter.size());
    }
  }
  const auto& parts = description_->pair;
  return fill(parts.empty() ? plain_pair() : parts, first, second, {});
}

encoding tokenizer::encode_words(std::span<const std::string> words, std::size_t most) const {
  SHOAL_CHECK(most == 0 || most >= added_to_single(), "the template fits");
  std::vector<token_id> ids;
  std::vector<std::int64_t> of;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto tokens = encode(words[i]);
    ids.insert(ids.end(), tokens.begin(), tokens.end());
    of.resize(ids.size(), static_cast<std::int64_t>(i));
  }
  if (most > 0) {
    ids.resize(std::min(ids.size(), most - added_to_single()));
    of.resize(ids.size());
  }
  const auto& parts = description_->single;
  auto out = fill(parts.empty() ? plain_single() : parts, ids, {}, of);
  out.words.resize(out.ids.size(), -1);
  return out;
}

std::string tokenizer::decoded(std::span<const token_id> tokens, bool with_special) const {
  std::string out;
  bool first = true;
  for (const auto id : tokens) {
    const std::string_view text = token(id);
    if (!with_special && is_special(id)) continue;
    switch (description_->decoder) {
    case decoder_kind::none:
      out.append(first ? "" : " ").append(text);
      break;
    case decoder_kind::metaspace: {
      const auto& mark = description_->decoder_mark;
      for (std::size_t at = 0; at < text.size();) {
        if (text.substr(at).starts_with(mark)) {
          if (!first || !description_->decoder_drops_first) out.push_back(' ');
          at += mark.size();
        } else {
          out.push_back(text[at++]);
        }
      }
      break;
    }
    case decoder_kind::byte_fallback:
      if (const auto byte = byte_of_token(text); byte >= 0)
        out.push_back(static_cast<char>(byte));
      else
        out.append(first && text.starts_with(' ') ? text.substr(1) : text);
      break;
    case decoder_kind::byte_level: {
      std::string bytes;
      bool all = true;
      unicode::for_each(text, [&](char32_t c, std::size_t, unsigned) {
        const auto byte = byte_of_character(c);
        all = all && byte >= 0;
        if (byte >= 0) bytes.push_back(static_cast<char>(byte));
      });
      // An added token need not consist of such characters.
      out.append(all ? bytes : std::string(text));
      break;
    }
    }
    first = false;
  }
  return out;
}

std::string tokenizer::decode(std::span<const token_id> tokens) const {
  return decoded(tokens, false);
}
std::string tokenizer::decode_with_special(std::span<const token_id> tokens) const {
  return decoded(tokens, true);
}

} // namespace shoal::learn
