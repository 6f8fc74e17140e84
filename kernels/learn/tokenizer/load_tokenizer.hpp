// Finds out what kind of tokenizer a path has, and loads it.
#pragma once

#include "kernels/base/result.hpp"
#include "kernels/learn/text_codec.hpp"
#include "kernels/learn/tokenizer/tokenizer.hpp"

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace shoal::learn {

struct loaded_tokenizer {
  std::shared_ptr<const text_codec> codec;
  /// The same as a pipeline; null for bytes and for SentencePiece, which have none.
  const tokenizer* pipeline = nullptr;
  std::string kind; ///< 'Unigram', 'BPE', 'SentencePiece' or 'bytes'
  /// Names and values for people, without the kind.
  std::vector<std::pair<std::string, std::string>> facts;
};

/// `path` is 'bytes', a tokenizer.json, a `.model` of SentencePiece, a `.bin` of llama2.c, or a
/// folder. A folder has tokenizer.json, tokenizer.model, spiece.model, or a vocabulary of GPT-2:
/// encoder.json and vocab.bpe, or vocab.json and merges.txt. The first of these counts.
/// Errors: as of the readers; a folder without a tokenizer.
result<loaded_tokenizer> load_tokenizer(const std::filesystem::path& path);

} // namespace shoal::learn
