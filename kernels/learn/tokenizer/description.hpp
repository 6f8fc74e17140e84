// The parts of a tokenizer, in the order in which a text goes through them. The file
// tokenizer.json (kernels/learn/formats/tokenizer_json.hpp) has the same parts.
#pragma once

#include "kernels/learn/tokenizer/byte_pairs.hpp"
#include "kernels/learn/tokenizer/normalize.hpp"
#include "kernels/learn/tokenizer/split.hpp"
#include "kernels/learn/tokenizer/unigram.hpp"

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace shoal::learn {

/// A token that is cut out of a text before anything else, such as '[MASK]'.
struct added_token {
  token_id id = 0;
  std::string content{};
  bool special = false;     ///< left out of decoded text
  bool normalized = false;  ///< looked for in the normalized text, by its normalized content
  bool single_word = false; ///< not inside of a word
  bool strip_left = false, strip_right = false; ///< swallows white space beside it
  bool in_texts = true; ///< looked for in texts; the file tokenizer.json knows only such tokens
  bool operator==(const added_token&) const = default;
};

/// One part of what a model gets: a special token, or the first or second text.
struct template_part {
  enum class kind : std::uint8_t { token, first, second } what = kind::token;
  std::string token{}; ///< the name of a special token
  std::vector<token_id> ids{};
  std::uint8_t type = 0;
  bool operator==(const template_part&) const = default;
};

enum class decoder_kind : std::uint8_t {
  none,         ///< tokens, with a space between them
  metaspace,    ///< the mark becomes a space, and goes from the first token
  byte_level,   ///< characters become bytes again
  byte_fallback ///< tokens '<0xE0>' become bytes, and the first space goes
};

struct tokenizer_description {
  std::vector<added_token> added{};
  std::vector<normalizer_step> normalizer{};
  std::vector<splitter> splitters{};
  std::variant<unigram_description, byte_pairs_description> model{};
  /// Empty: the text alone, and two texts one behind the other.
  std::vector<template_part> single{}, pair{};
  decoder_kind decoder = decoder_kind::none;
  std::string decoder_mark = "\u2581"; ///< for metaspace: one code point
  bool decoder_drops_first = true;     ///< for metaspace: the mark goes from the first token
  bool operator==(const tokenizer_description&) const = default;
};

} // namespace shoal::learn
