// Trains the vocabulary of a unigram language model from counted words. All characters and many
// repeated substrings begin, and the least useful ones go, round by round:
//   twice:  E: expected counts c of all pieces, by the forward-backward algorithm on every word
//           M: pieces with c < 0.5 go; score = digamma(c) - digamma(sum of c)
//   stop at 1.1 V pieces; prune: pieces that no best segmentation uses go, and of the others the
//   max(1.1 V, 0.75 n) with the largest loss stay, where
//   loss = c / N (log p - sum of log p' over the second-best segmentation of the piece itself);
//   p' = (c' + c) / (S + c (n - 1)) for a piece with count c' of S counts in all, N the words in
//   all
// At the end all characters and then the best pieces make up the V tokens. No randomness: equal
// words give equal vocabularies. Ties go to the piece that comes first in code points.
// Source: Kudo, "Subword Regularization", arXiv:1804.10959, section 3.2; the details as in
// google/sentencepiece 0.1.97, src/unigram_model_trainer.cc; digamma: Liang and Klein, "Structured
// Bayesian Nonparametric Models with Variational Inference", ACL 2007 tutorial.
#pragma once

#include "kernels/base/result.hpp"
#include "kernels/learn/tokenizer/repeated_substrings.hpp"
#include "kernels/learn/tokenizer/unigram.hpp"

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace shoal::learn {

struct unigram_training {
  std::size_t vocabulary = 8000;                      ///< tokens, with the special ones
  std::vector<std::string> special{"<pad>", "<unk>"}; ///< the first tokens, with score 0
  std::size_t unknown = 1;                            ///< index in `special`
  /// The fraction of all characters that must be tokens. The rarest others become unknown.
  double character_coverage = 0.9995;
  std::size_t longest_piece = 16; ///< characters
  std::size_t most_seeds = 1'000'000;
  /// Whether each piece has characters of one script, as SentencePiece has it. Texts whose
  /// pre-tokenizer cuts out punctuation and digits need no such rule.
  bool one_script = false;
  /// Words, each with the character after it: follower(c), or follower(U'\n') at the end of a line.
  /// Then a word is a seed if different characters follow it, as in SentencePiece, which looks for
  /// repeated substrings in whole lines. None: each end of a word is different from the others.
  std::vector<counted_word> followed_words{};
};

/// The code of a character that follows a word and is no part of it. It is above all characters.
constexpr char32_t follower(char32_t character) noexcept {
  return 0x110000 + character;
}

/// The report of the trainer after each round.
struct unigram_progress {
  std::size_t pieces = 0, wanted = 0;
  double log_likelihood = 0; ///< the mean of a word, in nats
};

/// Words may repeat. Requires: special tokens are different, and one of them is `unknown`.
/// Errors: no words; more characters than tokens; too few pieces for the vocabulary (says how many
/// there are).
result<unigram_description>
train_unigram(std::vector<counted_word> words, const unigram_training& options,
              const std::function<void(const unigram_progress&)>& progress = {});

/// The derivative of log gamma. Error: below 1e-12 absolute. Requires: x > 0.
/// Source: Abramowitz and Stegun, 6.3.5 and 6.3.18.
double digamma(double x);

} // namespace shoal::learn
