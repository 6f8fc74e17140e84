// Trains a whole tokenizer from texts: counts the words that its pipeline gives, and trains a
// unigram vocabulary of them (train_unigram.hpp).
#pragma once

#include "kernels/base/result.hpp"
#include "kernels/learn/tokenizer/description.hpp"
#include "kernels/learn/tokenizer/train_unigram.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace shoal::learn {

/// The steps before texts are cut into words.
enum class text_rules : std::uint8_t {
  general, ///< Nmt, NFKC, runs of spaces
  bengali, ///< the same and sahajBERT's: one sign for each danda, and ':' for the visarga
  none     ///< nothing
};

/// The pipeline of sahajBERT with an empty vocabulary. Its special tokens are `<pad>` 0, `<unk>` 1,
/// [CLS] 2, [SEP] 3 and [MASK] 4. Spaces are marked, and digits and punctuation stand alone. Texts
/// become [CLS] A [SEP] and [CLS] A [SEP] B [SEP].
tokenizer_description albert_pipeline(text_rules rules, bool lower_case);

/// How often each word occurs in texts. A word is a piece after the pre-tokenizers.
class word_counts {
public:
  explicit word_counts(const tokenizer_description& pipeline) : pipeline_(pipeline) {}
  /// Adds the lines of a text, each on its own. Added tokens are no words.
  void add(std::string_view text);
  std::uint64_t total() const noexcept { return total_; }
  std::size_t different() const noexcept { return counts_.size(); }
  /// In the order of their bytes.
  std::vector<counted_word> words() const;
  /// The same, once for each follower() of the word. Followers are in the order of their codes.
  std::vector<counted_word> followed_words() const;

private:
  /// Counts of a word, by the character after it.
  using by_follower = std::vector<std::pair<char32_t, std::uint64_t>>;
  std::vector<const std::pair<const std::string, by_follower>*> ordered() const;

  const tokenizer_description& pipeline_;
  std::unordered_map<std::string, by_follower> counts_;
  std::uint64_t total_ = 0;
};

/// Fills the vocabulary of `pipeline`. Its added tokens with the numbers 0 to n - 1 are the special
/// tokens; the one called `<unk>` stands for unknown characters.
/// Errors: as of train_unigram().
result<tokenizer_description>
train_tokenizer(const word_counts& words, tokenizer_description pipeline, unigram_training options,
                const std::function<void(const unigram_progress&)>& progress = {});

} // namespace shoal::learn
