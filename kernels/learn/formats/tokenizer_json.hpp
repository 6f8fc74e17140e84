// Reads and writes tokenizer.json, the file of Hugging Face's tokenizers (version 1.0).
//   normalizer      Sequence, Nmt, NFC, NFD, NFKC, NFKD, Lowercase, Prepend, Replace (a text, or
//   one
//                   of the regular expressions ' {2,}' and '(?<=[\u0980-\u09ff]):')
//   pre_tokenizer   Sequence, Metaspace, Digits, Punctuation (Isolated), ByteLevel, WhitespaceSplit
//   model           Unigram, BPE
//   post_processor  Sequence, TemplateProcessing, ByteLevel
//   decoder         Metaspace, ByteLevel
// Other types, regular expressions, truncation and padding are refused by their names, because a
// tokenizer without them would give other tokens. Unknown keys beside known ones are left alone.
// Source: huggingface/tokenizers, the serializations of each type.
#pragma once

#include "kernels/base/result.hpp"
#include "kernels/learn/tokenizer/description.hpp"
#include "kernels/learn/tokenizer/tokenizer.hpp"

#include <filesystem>
#include <string>
#include <string_view>

namespace shoal::learn {

/// Errors call the file `name`. Errors: no JSON, a missing key, a value of another type, an unknown
/// type (with its name).
result<tokenizer_description> parse_tokenizer_json(std::string_view text, const std::string& name);
/// The file's contents. The same description gives the same text.
std::string tokenizer_json(const tokenizer_description& description);

/// Reads the file and makes its tokenizer. Errors: as above, as of tokenizer::make(), or the file
/// cannot be read.
result<tokenizer> load_tokenizer_json(const std::filesystem::path& path);

/// GPT-2's first form of a tokenizer: encoder.json, an object of tokens and numbers, and vocab.bpe,
/// a merge in each line after '#version'. The pieces are those of ByteLevel. No token is special,
/// so `<|endoftext|>` in a text is text. Errors: as above.
result<tokenizer_description>
parse_gpt2_vocabulary(std::string_view encoder, std::string_view merges, const std::string& name);

} // namespace shoal::learn
