// A tokenizer: text to tokens of a model and back. A text goes through these steps:
//   1 added tokens that are not normalized are cut out, the leftmost and then the longest first;
//   2 each rest is normalized, and the other added tokens are cut out;
//   3 each rest is split, and the model turns its pieces into tokens;
//   4 a template puts special tokens around one text or two.
// Source: huggingface/tokenizers, src/tokenizer (the pipeline and its order).
// Thread safety: immutable after construction.
#pragma once

#include "kernels/learn/text_codec.hpp"
#include "kernels/learn/tokenizer/description.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::learn {

/// The input of a model: all vectors have the same length.
struct encoding {
  std::vector<token_id> ids{};
  std::vector<std::uint8_t> types{};   ///< 1 for the second text of a pair
  std::vector<std::uint8_t> special{}; ///< 1 for tokens of the template
  /// The index of the word of each token; -1 for tokens of the template. Only of encode_words().
  std::vector<std::int64_t> words{};
};

class tokenizer final : public text_codec {
public:
  /// Errors: a description whose parts do not fit: see unigram::make() and byte_pairs::make(). An
  /// added token whose number belongs to another one, or a number without a token.
  static result<tokenizer> make(tokenizer_description description);

  const tokenizer_description& description() const noexcept { return *description_; }
  const token_model& model() const noexcept { return *model_; }
  std::int64_t vocabulary() const override { return static_cast<std::int64_t>(texts_.size()); }
  /// The text of a token, as the vocabulary has it. Requires: 0 <= id < vocabulary().
  const std::string& token(token_id id) const;
  std::optional<token_id> find(std::string_view token) const;
  bool is_special(token_id id) const;

  /// Steps 1 to 3.
  std::vector<token_id> encode(std::string_view text) const override;
  /// The pieces that step 3 gives to the model, without added tokens.
  std::vector<std::string> pieces(std::string_view text) const;

  /// Steps 1 to 4. With `most` > 0, texts are cut at their ends so that all fits: the longer one
  /// first, and both to one half. Requires: most == 0 or most >= the tokens of the template.
  encoding encode_single(std::string_view text, std::size_t most = 0) const;
  encoding encode_pair(std::string_view a, std::string_view b, std::size_t most = 0) const;
  /// Each word goes through steps 1 to 3 alone, as in texts that are split already.
  encoding encode_words(std::span<const std::string> words, std::size_t most = 0) const;
  /// The tokens that a template adds to one text, or to two.
  std::size_t added_to_single() const noexcept;
  std::size_t added_to_pair() const noexcept;

  /// Special tokens are left out. Requires: as in text_codec.
  std::string decode(std::span<const token_id> tokens) const override;
  std::string decode_with_special(std::span<const token_id> tokens) const;

private:
  tokenizer() = default;
  struct pattern {
    std::string text;
    std::size_t added; ///< index in description_->added
  };
  struct segment {
    std::size_t begin, end;
    std::optional<token_id> token;
  };
  std::vector<segment> cut_out(std::string_view text, const std::vector<pattern>& patterns) const;
  template <class Token, class Rest>
  void for_each_part(std::string_view text, Token token, Rest rest) const;
  encoding fill(const std::vector<template_part>& parts, std::span<const token_id> first,
                std::span<const token_id> second, std::span<const std::int64_t> words) const;
  std::string decoded(std::span<const token_id> tokens, bool with_special) const;

  std::unique_ptr<tokenizer_description> description_; ///< without its model
  std::unique_ptr<token_model> model_;
  std::vector<std::string> texts_;
  std::vector<std::uint8_t> special_;
  std::vector<pattern> patterns_, normalized_patterns_; ///< the longest first
};

} // namespace shoal::learn
