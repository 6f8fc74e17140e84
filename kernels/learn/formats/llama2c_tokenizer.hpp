// Reads the tokenizer files of llama2.c, such as tok512.bin. Little-endian:
//   i32 length of the longest token; then for each token: float32 score, i32 length, bytes.
// A text gets a space in front and becomes its characters; tokens '<0x00>' to '<0xFF>' spell those
// that are no token. Two neighbours whose joined text is a token are joined, those with the highest
// score first and the leftmost of equals, until there are none. Source: karpathy/llama2.c,
// tokenizer.py (export) and run.c (build_tokenizer, encode, decode).
#pragma once

#include "kernels/base/result.hpp"
#include "kernels/learn/tokenizer/description.hpp"

#include <string>
#include <string_view>

namespace shoal::learn {

/// Tokens 1 and 2 begin and end a text; they are special, and in no encoded text. Errors call the
/// file `name`: it is truncated, has no tokens, or a score that is no number.
result<tokenizer_description> parse_llama2c_tokenizer(std::string_view bytes,
                                                      const std::string& name);

} // namespace shoal::learn
