// The unigram language model: a piece of text becomes the tokens with the largest sum of scores.
//   best[0] = 0;  best[j] = max over tokens t that end at j of best[j - length(t)] + score(t)
// A place at which no token of one character begins has an edge of one character to `unknown` with
// the score min(scores) - 10. A run of unknown characters becomes one token `unknown`. The first
// one of equal sums stays, with starts and then lengths ascending. Source: Kudo, "Subword
// Regularization", arXiv:1804.10959, section 3.2; ties and the unknown character as in
// huggingface/tokenizers, src/models/unigram.
#pragma once

#include "kernels/learn/tokenizer/piece_trie.hpp"
#include "kernels/learn/tokenizer/token_model.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace shoal::learn {

struct unigram_description {
  std::vector<std::pair<std::string, double>> pieces{}; ///< with the logarithms of probabilities
  token_id unknown = 0;
  bool byte_fallback = false; ///< unknown characters become tokens '<0xE0>' of their bytes
  bool operator==(const unigram_description&) const = default;
};

class unigram final : public token_model {
public:
  /// Errors: no pieces, a score that is no number, an unknown token outside of the vocabulary, or
  /// byte_fallback without the tokens of bytes.
  static result<unigram> make(unigram_description description);

  const token_list& tokens() const override { return tokens_; }
  void encode(const split_text& text, std::vector<token_id>& to) const override;

  token_id unknown() const noexcept { return unknown_; }
  double score(token_id id) const { return scores_[static_cast<std::size_t>(id)]; }
  /// The sum of scores of the best segmentation of one piece, with unknown characters.
  double best_score(std::string_view piece) const;

private:
  unigram(unigram_description description, token_list tokens);
  struct scratch;
  double segment(std::string_view piece, scratch& with) const;

  token_list tokens_;
  std::vector<double> scores_;
  token_id unknown_;
  std::vector<token_id> bytes_; ///< empty without byte_fallback
  double unknown_score_;
  piece_trie trie_;
};

} // namespace shoal::learn
