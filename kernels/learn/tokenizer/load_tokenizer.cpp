#include "kernels/learn/tokenizer/load_tokenizer.hpp"

#include "kernels/learn/formats/llama2c_tokenizer.hpp"
#include "kernels/learn/formats/sentencepiece_model.hpp"
#include "kernels/learn/formats/tokenizer_json.hpp"
#include "kernels/learn/formats/whole_file.hpp"
#include "kernels/learn/tokenizer/unicode.hpp"

#include <algorithm>
#include <array>

namespace shoal::learn {

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t most_file_bytes = std::uint64_t{1} << 28;

std::string name_of(normalizer_kind kind) {
  static constexpr std::array names{"Nmt",           "NFC",       "NFD",     "NFKC",
                                    "NFKD",          "lowercase", "replace", "runs of spaces",
                                    "Bengali colon", "prepend"};
  return names[static_cast<std::size_t>(kind)];
}
std::string name_of(splitter_kind kind) {
  static constexpr std::array names{"Metaspace", "Digits", "Punctuation", "ByteLevel",
                                    "WhitespaceSplit"};
  return names[static_cast<std::size_t>(kind)];
}

template <class All, class Name>
std::string listed(const All& all, Name name) {
  std::string out;
  for (const auto& each : all) out += (out.empty() ? "" : ", ") + name(each);
  return out.empty() ? "none" : out;
}

void describe_tokens(const std::vector<std::string>& texts, loaded_tokenizer& to) {
  std::size_t longest = 0, singles = 0;
  for (const auto& each : texts) {
    const auto length = unicode::count(each);
    longest = std::max(longest, length);
    singles += length == 1 ? 1 : 0;
  }
  to.facts.emplace_back("longest token", std::to_string(longest) + " characters");
  to.facts.emplace_back("single characters", std::to_string(singles));
}

result<loaded_tokenizer> pipeline_of(result<tokenizer_description> description,
                                     const std::string& name) {
  if (!description) return failure{description.error()};
  loaded_tokenizer out;
  out.kind = std::holds_alternative<unigram_description>(description->model) ? "Unigram" : "BPE";
  if (const auto* pairs = std::get_if<byte_pairs_description>(&description->model))
    out.facts.emplace_back("merges", std::to_string(pairs->merges.size()));
  auto made = tokenizer::make(*std::move(description));
  if (!made) return failure{"tokenizer: '" + name + "': " + made.error()};
  auto codec = std::make_unique<tokenizer>(*std::move(made));
  const auto& parts = codec->description();
  describe_tokens(codec->model().tokens().texts(), out);
  out.facts.emplace_back(
      "normalizer", listed(parts.normalizer, [](const auto& step) { return name_of(step.kind); }));
  out.facts.emplace_back("pre-tokenizer", listed(parts.splitters, [](const auto& each) {
                           return name_of(each.kind);
                         }));
  out.facts.emplace_back("added tokens", listed(parts.added, [](const auto& token) {
                           return printable(token.content) + " " + std::to_string(token.id);
                         }));
  out.facts.emplace_back("around a text", std::to_string(codec->added_to_single()) + " tokens");
  out.facts.emplace_back("around a pair", std::to_string(codec->added_to_pair()) + " tokens");
  out.pipeline = codec.get();
  out.codec = std::move(codec);
  return out;
}

result<loaded_tokenizer> sentencepiece_of(const fs::path& path, std::string_view bytes) {
  auto model = sentencepiece_model::from_bytes(bytes, path.string());
  if (!model) return failure{model.error()};
  loaded_tokenizer out;
  out.kind = "SentencePiece";
  std::vector<std::string> texts;
  for (token_id id = 0; id < model->vocabulary(); ++id) texts.push_back(model->token(id));
  describe_tokens(texts, out);
  out.facts.emplace_back("unknown token", std::to_string(model->unknown()));
  out.codec = std::make_unique<sentencepiece_model>(*std::move(model));
  return out;
}

result<loaded_tokenizer> gpt2_of(const fs::path& encoder, const fs::path& merges) {
  const auto first = read_whole_file(encoder, most_file_bytes, "tokenizer");
  if (!first) return failure{first.error()};
  const auto second = read_whole_file(merges, most_file_bytes, "tokenizer");
  if (!second) return failure{second.error()};
  return pipeline_of(parse_gpt2_vocabulary(*first, *second, encoder.string()), encoder.string());
}

} // namespace

result<loaded_tokenizer> load_tokenizer(const fs::path& path) {
  if (path == "bytes") {
    loaded_tokenizer out;
    // The codec of bytes lives as long as the program.
    out.codec = {std::shared_ptr<const text_codec>{}, &byte_codec()};
    out.kind = "bytes";
    return out;
  }
  std::error_code error;
  if (fs::is_directory(path, error)) {
    for (const char* name : {"tokenizer.json", "tokenizer.model", "spiece.model"})
      if (fs::exists(path / name, error)) return load_tokenizer(path / name);
    for (const auto& [encoder, merges] :
         {std::pair{"encoder.json", "vocab.bpe"}, std::pair{"vocab.json", "merges.txt"}})
      if (fs::exists(path / encoder, error)) return gpt2_of(path / encoder, path / merges);
    return failure{"tokenizer: '" + path.string() +
                   "' is a folder without a tokenizer: it has no tokenizer.json, tokenizer.model, "
                   "spiece.model, encoder.json or vocab.json"};
  }
  const auto bytes = read_whole_file(path, most_file_bytes, "tokenizer");
  if (!bytes) return failure{bytes.error()};
  const auto name = path.string();
  const auto begin = bytes->find_first_not_of(" \t\r\n");
  if (begin != std::string::npos && (*bytes)[begin] == '{')
    return pipeline_of(parse_tokenizer_json(*bytes, name), name);
  if (path.extension() == ".bin") return pipeline_of(parse_llama2c_tokenizer(*bytes, name), name);
  return sentencepiece_of(path, *bytes);
}

} // namespace shoal::learn
