// The normalizers of a tokenizer: text to text, one step after the other.
// Source: huggingface/tokenizers, src/normalizers; Nmt and NFKC also in Kudo and Richardson,
// "SentencePiece", arXiv:1808.06226, section 3.2.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace shoal::learn {

enum class normalizer_kind : std::uint8_t {
  nmt, ///< drops control characters; spaces and marks of no width become ' '
  nfc,
  nfd,
  nfkc,
  nfkd,               ///< Unicode's forms
  lowercase,          ///< each code point alone
  replace,            ///< each `pattern`, from the left, by `content`
  replace_space_runs, ///< two spaces or more by `content`
  replace_colon,      ///< ':' after a Bengali character, U+0980 to U+09FF, by `content`
  prepend             ///< puts `content` in front, unless the text is empty
};

struct normalizer_step {
  normalizer_kind kind = normalizer_kind::nfkc;
  std::string pattern{}, content{};
  bool operator==(const normalizer_step&) const = default;
};

/// The text after all steps. Bytes that are no UTF-8 become U+FFFD, if there is a step.
/// Requires: the pattern of a `replace` is not empty.
/// Complexity: O(text bytes) for each step, of the longest text in between.
std::string normalize(std::string_view text, std::span<const normalizer_step> steps);

} // namespace shoal::learn
