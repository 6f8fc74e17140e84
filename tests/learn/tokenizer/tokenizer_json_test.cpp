#include "kernels/learn/formats/tokenizer_config.hpp"
#include "kernels/learn/formats/tokenizer_json.hpp"
#include "tests/support/reference_data.hpp"
#include "tests/support/skip.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <fstream>
#include <string>

using namespace shoal;
using namespace shoal::learn;

namespace {

const std::string unigram_model =
    R"("model":{"type":"Unigram","unk_id":0,"vocab":[["<unk>",0],["a",-1.5]]})";

std::string error_of(const std::string& parts) {
  const auto read = parse_tokenizer_json("{" + parts + "}", "t");
  if (!read) return read.error();
  const auto made = tokenizer::make(*read);
  return made ? "none" : made.error();
}

/// The error of a file with one more part.
std::string with(const std::string& part) {
  return error_of(part + "," + unigram_model);
}

} // namespace

TEST_CASE("tokenizer.json: unknown parts are refused by their names") {
  CHECK(error_of(unigram_model) == "none");
  CHECK(with(R"("normalizer":{"type":"Precompiled"})") ==
        "tokenizer: 't' has the normalizer 'Precompiled', which Shoal does not know");
  CHECK(
      with(R"("normalizer":{"type":"Sequence","normalizers":[{"type":"NFC"},{"type":"Strip"}]})") ==
      "tokenizer: 't' has the normalizer 'Strip', which Shoal does not know");
  CHECK(with(R"("normalizer":{"type":"Replace","pattern":{"Regex":"a+"},"content":"b"})") ==
        "tokenizer: 't' has the normalizer Replace with the regular expression 'a+'; Shoal knows "
        "' {2,}' and '(?<=[\\u0980-\\u09ff]):'");
  CHECK(with(R"("pre_tokenizer":{"type":"Split"})") ==
        "tokenizer: 't' has the pre-tokenizer 'Split', which Shoal does not know");
  CHECK(with(R"("pre_tokenizer":{"type":"Punctuation","behavior":"Removed"})")
            .find("only Isolated") != std::string::npos);
  CHECK(with(R"("post_processor":{"type":"BertProcessing"})") ==
        "tokenizer: 't' has the post-processor 'BertProcessing', which Shoal does not know");
  CHECK(with(R"("decoder":{"type":"WordPiece"})") ==
        "tokenizer: 't' has the decoder 'WordPiece', which Shoal does not know");
  CHECK(with(R"("truncation":{"max_length":5})") ==
        "tokenizer: 't' has truncation, which is not supported; set it to null");
  CHECK(error_of(R"("model":{"type":"WordLevel"})") ==
        "tokenizer: 't' has the model 'WordLevel', which Shoal does not know");
}

TEST_CASE("tokenizer.json: damaged files get an error that says where") {
  CHECK(
      parse_tokenizer_json("[", "t").error().starts_with("tokenizer: 't' cannot be understood ("));
  CHECK(error_of(R"("a":1)") == "tokenizer: 't' is no tokenizer.json: it has no model");
  CHECK(error_of(R"("model":{"type":"Unigram","vocab":[["a",0]]})") ==
        "tokenizer: 't' has the model Unigram without unk_id; set it to the number of the unknown "
        "token");
  CHECK(error_of(R"("model":{"type":"Unigram","unk_id":0,"vocab":[["a",0],["b"]]})") ==
        "tokenizer: 't' has a vocabulary whose entry 1 is no pair of a text and a number");
  CHECK(error_of(R"("model":{"type":"Unigram","unk_id":3,"vocab":[["a",0]]})") ==
        "the model Unigram has no piece for unk_id 3");
  CHECK(error_of(R"("model":{"type":"BPE","vocab":{"a":0,"b":2},"merges":[]})") ==
        "tokenizer: 't' has the token 'b' with number 2; the 2 tokens have numbers from 0 on, once "
        "each");
  CHECK(error_of(R"("model":{"type":"BPE","vocab":{"a":0},"merges":["a a"]})") ==
        "the model BPE has the merge 0 with 'aa', which is not in the vocabulary");
  CHECK(error_of(R"("model":{"type":"BPE","vocab":{"a":0},"merges":["aa"]})") ==
        "tokenizer: 't' has the merge 0, 'aa', which is no pair of tokens");
  CHECK(error_of(R"("model":{"type":"BPE","vocab":{"a":0},"merges":[],"dropout":0.1})")
            .find("dropout") != std::string::npos);
  CHECK(with(R"("added_tokens":[{"id":0,"content":"x"}])") ==
        "the added token 'x' with number 0 has the number of '<unk>'");
  CHECK(with(R"("added_tokens":[{"id":7,"content":"x"}])") ==
        "the added token 'x' with number 7 leaves a gap: the vocabulary has 2 tokens before added "
        "ones");
  CHECK(
      with(
          R"("post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"[C]","type_id":0}}],"pair":[],"special_tokens":{}})") ==
      "tokenizer: 't' has a template with '[C]', which is not among its special_tokens");
  CHECK(
      with(
          R"("post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"[C]","type_id":0}},{"Sequence":{"id":"A","type_id":0}}],"pair":[],"special_tokens":{"[C]":{"ids":[9]}}})") ==
      "the template has a token with number 9; the vocabulary has 2 tokens");
  CHECK(load_tokenizer_json("/nowhere").error() ==
        "tokenizer: '/nowhere' cannot be opened: No such file or directory");
}

TEST_CASE("tokenizer.json: a written file reads back equal") {
  tokenizer_description description;
  unigram_description model;
  model.pieces = {{"<unk>", 0}, {"\u2581\u0995", -1.0 / 3}, {"\"", -5e-324}};
  description.model = model;
  using enum normalizer_kind;
  description.normalizer = {{nmt, {}, {}},
                            {nfkc, {}, {}},
                            {replace, "|", "\u0964"},
                            {replace_space_runs, {}, " "},
                            {replace_colon, {}, "\u0983"},
                            {prepend, {}, "x"},
                            {lowercase, {}, {}}};
  splitter mark, digits, signs, bytes, words;
  mark.prepend = splitter::prefix::first;
  mark.cut = false;
  digits.kind = splitter_kind::digits;
  digits.individual = false;
  signs.kind = splitter_kind::punctuation;
  bytes.kind = splitter_kind::byte_level;
  bytes.add_prefix_space = true;
  words.kind = splitter_kind::whitespace;
  description.splitters = {mark, digits, signs, bytes, words};
  added_token added{3, "[M]", true, true, true, true, true};
  description.added = {added};
  using kind = template_part::kind;
  description.single = {{kind::token, "[M]", {3}, 0}, {kind::first, {}, {}, 0}};
  description.pair = {{kind::first, {}, {}, 0}, {kind::second, {}, {}, 1}};
  description.decoder = decoder_kind::metaspace;
  const auto text = tokenizer_json(description);
  const auto read = parse_tokenizer_json(text, "t");
  REQUIRE_MESSAGE(read.ok(), read.error());
  CHECK(*read == description);
  CHECK(tokenizer_json(*read) == text);
}

TEST_CASE("tokenizer_config.json: special tokens have the roles of their names") {
  tokenizer_description description;
  description.added = {
      {0, "<pad>", true}, {1, "</s>", true}, {2, "[MASK]", true}, {3, "<unk>", false}};
  description.added[2].strip_left = true;
  const auto said = nlohmann::json::parse(tokenizer_config_json(description, 64));
  CHECK(said["tokenizer_class"] == "PreTrainedTokenizerFast");
  CHECK(said["model_max_length"] == 64);
  CHECK(said["pad_token"]["content"] == "<pad>");
  CHECK(said["sep_token"]["content"] == "</s>");
  CHECK(said["eos_token"]["content"] == "</s>");
  CHECK(said["mask_token"]["lstrip"] == true);
  CHECK(said["pad_token"]["lstrip"] == false);
  CHECK(!said.contains("unk_token")); // that token is no special one
  CHECK(!said.contains("cls_token"));
}

TEST_CASE("tokenizer_config.json: the published tokenizer of sahajBERT has its published roles") {
  SHOAL_NEEDS_DATA(path, "sahajbert_tokenizer/tokenizer.json");
  const auto codec = load_tokenizer_json(path);
  REQUIRE(codec.ok());
  const auto said = nlohmann::json::parse(tokenizer_config_json(codec->description(), 512));
  std::ifstream file(path.parent_path() / "special_tokens_map.json");
  const auto wanted = nlohmann::json::parse(file);
  CHECK(wanted.size() == 7);
  for (const auto& [role, token] : wanted.items()) {
    CHECK_MESSAGE(said[role]["content"] == (token.is_string() ? token : token["content"]), role);
    if (token.is_object()) CHECK(said[role]["lstrip"] == token["lstrip"]);
  }
}

TEST_CASE("tokenizer.json: the published file of sahajBERT reads and is written equal") {
  SHOAL_NEEDS_DATA(path, "sahajbert_tokenizer/tokenizer.json");
  const auto read = parse_tokenizer_json(contents_of(path), "sahajbert");
  REQUIRE_MESSAGE(read.ok(), read.error());
  CHECK(std::get<unigram_description>(read->model).pieces.size() == 32000);
  CHECK(read->normalizer.size() == 9);
  CHECK(read->splitters.size() == 3);
  const auto again = parse_tokenizer_json(tokenizer_json(*read), "again");
  REQUIRE_MESSAGE(again.ok(), again.error());
  CHECK(*again == *read);
}
