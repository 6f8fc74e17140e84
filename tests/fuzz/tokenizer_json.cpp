// tokenizer.json up to the first zero byte, then a text for the tokenizer that it describes. With a
// first byte above 127 the file is a tokenizer of llama2.c.
#include "kernels/learn/formats/tokenizer_json.hpp"

#include "kernels/learn/formats/llama2c_tokenizer.hpp"
#include "tests/fuzz/targets.hpp"

#include <algorithm>

namespace shoal::fuzz {

namespace {

void use(const learn::tokenizer& codec, std::string_view text) {
  const auto ids = codec.encode(text);
  const auto in_vocabulary = [&](learn::token_id id) { return id >= 0 && id < codec.vocabulary(); };
  must(std::all_of(ids.begin(), ids.end(), in_vocabulary), "tokens are in the vocabulary");
  const auto decoded = codec.decode_with_special(ids);
  must(codec.decode(ids).size() <= decoded.size(), "special tokens only add text");
  const auto whole = codec.encode_pair(text, text.substr(text.size() / 2));
  must(whole.ids.size() == whole.types.size() && whole.ids.size() == whole.special.size(),
       "each token has a type");
  must(std::all_of(whole.ids.begin(), whole.ids.end(), in_vocabulary), "special tokens, too");
  const auto most = codec.added_to_single() + 3;
  must(codec.encode_single(text, most).ids.size() <= most,
       "a cut text has as many tokens as it may have");
}

} // namespace

void tokenizer_json(bytes input) {
  front from(input);
  const auto kind = from.byte();
  const auto all = text_of(from.rest());
  const auto zero = kind < 128 ? std::min(all.find('\0'), all.size()) : all.size() / 4 * 3;
  const auto file = all.substr(0, zero), text = all.substr(std::min(zero + 1, all.size()));
  const auto read = kind < 128 ? learn::parse_tokenizer_json(file, "any")
                               : learn::parse_llama2c_tokenizer(file, "any");
  if (!read) return must(read.error().starts_with("tokenizer: 'any' "), "an error says which file");
  if (kind < 128) {
    const auto written = learn::tokenizer_json(*read);
    const auto again = learn::parse_tokenizer_json(written, "again");
    must(again.ok() && *again == *read, "a written file reads back equal");
  }
  const auto codec = learn::tokenizer::make(*read);
  if (!codec) return must(!codec.error().empty(), "an error has words");
  use(*codec, text);
}

} // namespace shoal::fuzz
