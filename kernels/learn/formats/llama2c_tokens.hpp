// The tokens of llama2.c, as in tok512.bin. Little-endian: i32 longest; then for each token a score
// float32, a length i32 and its bytes. Tokens 0 to 2 are <unk>, the beginning and the end of a
// text; 3 to 258 are the bytes. Encoding: a space, then the code points of the text, unknown ones
// as their bytes. Then the two neighbours that make the token of the best score are merged, the
// first of equals, until none do. Source: karpathy/llama2.c, run.c (build_tokenizer, encode,
// decode).
#pragma once

#include "kernels/base/result.hpp"
#include "kernels/learn/text_codec.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::learn {

class llama2c_tokens final : public text_codec {
public:
  static constexpr token_id begin_of_text = 1;

  /// Errors: no such file, a length that does not fit, or another number of tokens than
  /// `vocabulary`.
  static result<llama2c_tokens> load(const std::filesystem::path& path, std::int64_t vocabulary);
  /// The same from the bytes of a file. Errors call it `name`.
  static result<llama2c_tokens> read(std::string_view bytes, std::int64_t vocabulary,
                                     const std::string& name);

  std::int64_t vocabulary() const override { return static_cast<std::int64_t>(pieces_.size()); }
  /// The tokens of `text`, with begin_of_text before them.
  std::vector<token_id> encode(std::string_view text) const override;
  std::string decode(std::span<const token_id> tokens) const override;
  /// The text of a token after `previous`: the first space of a text is no part of it.
  std::string piece(token_id previous, token_id token) const;

private:
  std::vector<std::string> pieces_;
  std::vector<float> scores_;
  std::map<std::string, token_id, std::less<>> ids_; // the first token of equal bytes
};

} // namespace shoal::learn
