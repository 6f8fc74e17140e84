// Writes tokenizer_config.json, which tells transformers the class of a tokenizer and the roles of
// its special tokens. Without the file, transformers makes the class that it knows for the model.
// That class has steps of its own in place of those in tokenizer.json (seen with version 5.17).
// Source: the file beside the published tokenizer of sahajBERT.
#pragma once

#include "kernels/learn/tokenizer/description.hpp"

#include <cstdint>
#include <string>

namespace shoal::learn {

/// The file's contents. Roles go to special tokens by their names, as <pad>, [PAD] and <mask>.
/// `longest`: the most tokens of a text. The same arguments give the same text.
std::string tokenizer_config_json(const tokenizer_description& of, std::int64_t longest);

} // namespace shoal::learn
