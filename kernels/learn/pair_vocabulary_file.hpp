// The vocabulary of a tokenizer.json for ALBERT's samples.
#pragma once

#include "kernels/base/result.hpp"
#include "kernels/learn/masked_pair.hpp"

#include <cstdint>
#include <filesystem>

namespace shoal::learn {

/// The tokenizer in the file, for a model of `tokens` tokens; an empty path: bytes. The special
/// tokens are [CLS], [SEP] and [MASK], or <s>, </s> and <mask>. Errors: a file that cannot be read
/// (load_tokenizer_json()), a tokenizer without one of these tokens, or one with more tokens than
/// the model has.
result<pair_vocabulary> load_pair_vocabulary(const std::filesystem::path& path,
                                             std::int64_t tokens);

} // namespace shoal::learn
