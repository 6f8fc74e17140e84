// The tokens of whole tokenizers, beside those that the official library gave to the same texts.
#include "kernels/learn/formats/tokenizer_json.hpp"
#include "kernels/learn/tokenizer/tokenizer.hpp"
#include "tests/support/reference_data.hpp"
#include "tests/support/skip.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <sstream>
#include <string>
#include <vector>

using namespace shoal;
using namespace shoal::learn;
using json = nlohmann::json;

namespace {

std::vector<json> lines_of(const std::filesystem::path& path) {
  std::istringstream in(contents_of(path));
  std::vector<json> out;
  for (std::string line; std::getline(in, line);) out.push_back(json::parse(line));
  return out;
}

std::vector<token_id> ids_of(const json& line) {
  return line.at("ids").get<std::vector<token_id>>();
}

} // namespace

TEST_CASE("sahajBERT: single texts have the official tokens") {
  SHOAL_NEEDS_DATA(path, "sahajbert_tokenizer/tokenizer.json");
  SHOAL_NEEDS_DATA(cases, "oracle_vectors/sahajbert_single.jsonl");
  const auto codec = load_tokenizer_json(path);
  REQUIRE_MESSAGE(codec.ok(), codec.error());
  CHECK(codec->vocabulary() == 32000);
  std::size_t equal = 0;
  const auto lines = lines_of(cases);
  CHECK(lines.size() >= 290);
  for (const auto& line : lines) {
    const auto text = line.at("text").get<std::string>();
    const auto got = codec->encode_single(text);
    INFO(text);
    CHECK(got.ids == ids_of(line));
    equal += got.ids == ids_of(line) ? 1 : 0;
    // The official tokens are texts of the original, except for added tokens and unknown ones.
    const auto tokens = line.at("tokens").get<std::vector<std::string>>();
    REQUIRE(tokens.size() == got.ids.size());
    for (std::size_t i = 0; i < tokens.size(); ++i)
      if (const auto id = got.ids[i]; id > 4) CHECK(codec->token(id) == tokens[i]);
  }
  MESSAGE(equal << " of " << lines.size() << " equal");
}

TEST_CASE("sahajBERT: pairs have the official tokens and types") {
  SHOAL_NEEDS_DATA(path, "sahajbert_tokenizer/tokenizer.json");
  SHOAL_NEEDS_DATA(cases, "oracle_vectors/sahajbert_pair.jsonl");
  const auto codec = load_tokenizer_json(path);
  REQUIRE_MESSAGE(codec.ok(), codec.error());
  const auto lines = lines_of(cases);
  CHECK(lines.size() >= 20);
  for (const auto& line : lines) {
    const auto got =
        codec->encode_pair(line.at("a").get<std::string>(), line.at("b").get<std::string>());
    CHECK(got.ids == ids_of(line));
    CHECK(got.types == line.at("type_ids").get<std::vector<std::uint8_t>>());
    CHECK(got.special == line.at("special").get<std::vector<std::uint8_t>>());
  }
  MESSAGE(lines.size() << " pairs");
}

TEST_CASE("sahajBERT: texts that are split into words have the official tokens") {
  SHOAL_NEEDS_DATA(path, "sahajbert_tokenizer/tokenizer.json");
  SHOAL_NEEDS_DATA(cases, "oracle_vectors/sahajbert_words.jsonl");
  const auto codec = load_tokenizer_json(path);
  REQUIRE_MESSAGE(codec.ok(), codec.error());
  const auto lines = lines_of(cases);
  CHECK(lines.size() >= 40);
  for (const auto& line : lines) {
    const auto got = codec->encode_words(line.at("words").get<std::vector<std::string>>());
    CHECK(got.ids == ids_of(line));
    std::vector<std::int64_t> words;
    for (const auto& word : line.at("word_ids"))
      words.push_back(word.is_null() ? -1 : word.get<std::int64_t>());
    CHECK(got.words == words);
  }
  MESSAGE(lines.size() << " texts");
}

TEST_CASE("sahajBERT: a decoded text is the normalized one") {
  SHOAL_NEEDS_DATA(path, "sahajbert_tokenizer/tokenizer.json");
  const auto codec = load_tokenizer_json(path);
  REQUIRE_MESSAGE(codec.ok(), codec.error());
  const std::string text = "এই ইউনিয়নে মৌজা ও গ্রাম আছে";
  CHECK(codec->decode(codec->encode_single(text).ids) ==
        normalize(text, codec->description().normalizer));
  CHECK(codec->decode_with_special(codec->encode_single("[MASK]").ids) == "[CLS][MASK][SEP]");
  CHECK(codec->find("[MASK]") == 4);
  CHECK(codec->token(3) == "[SEP]");
}

TEST_CASE("GPT-2: texts have the published tokens and come back to the byte") {
  SHOAL_NEEDS_DATA(encoder, "gpt2_bpe/encoder.json");
  SHOAL_NEEDS_DATA(merges, "gpt2_bpe/vocab.bpe");
  SHOAL_NEEDS_DATA(cases, "oracle_vectors/gpt2_bpe.jsonl");
  const auto description =
      parse_gpt2_vocabulary(contents_of(encoder), contents_of(merges), "gpt2_bpe");
  REQUIRE_MESSAGE(description.ok(), description.error());
  // The same tokenizer as a tokenizer.json.
  const auto read = parse_tokenizer_json(tokenizer_json(*description), "written");
  REQUIRE_MESSAGE(read.ok(), read.error());
  CHECK(*read == *description);
  const auto codec = tokenizer::make(*read);
  REQUIRE_MESSAGE(codec.ok(), codec.error());
  CHECK(codec->vocabulary() == 50257);
  for (const auto& line : lines_of(cases)) {
    const auto text = line.at("text").get<std::string>();
    const auto got = codec->encode(text);
    INFO(text);
    CHECK(got == ids_of(line));
    CHECK(codec->decode(got) == text);
  }
  // Bytes that are no UTF-8 survive, too.
  const std::string bytes = "a\xff\xfe b\xe0\xa6 c";
  CHECK(codec->decode(codec->encode(bytes)) == bytes);
}

TEST_CASE("a tokenizer cuts a pair so that the longer text loses tokens first") {
  tokenizer_description description;
  unigram_description model;
  model.pieces = {{"<unk>", 0}, {"[S]", 0}, {"a", -1}, {"b", -1}};
  description.model = model;
  using kind = template_part::kind;
  description.single = {{kind::token, "[S]", {1}, 0}, {kind::first, {}, {}, 0}};
  description.pair = {
      {kind::first, {}, {}, 0}, {kind::token, "[S]", {1}, 0}, {kind::second, {}, {}, 1}};
  const auto codec = tokenizer::make(description);
  REQUIRE_MESSAGE(codec.ok(), codec.error());
  using ids = std::vector<token_id>;
  CHECK(codec->encode_single("aab", 3).ids == ids{1, 2, 2});
  CHECK(codec->encode_pair("aaaa", "bb", 6).ids == ids{2, 2, 2, 1, 3, 3});
  CHECK(codec->encode_pair("a", "bbbbbb", 6).ids == ids{2, 1, 3, 3, 3, 3});
  CHECK(codec->encode_pair("aaaa", "bbbb", 6).ids == ids{2, 2, 1, 3, 3, 3});
  CHECK(codec->encode_pair("aaaaa", "bbbb", 6).ids == ids{2, 2, 2, 1, 3, 3});
  CHECK(codec->encode_pair("a", "b", 6).types == std::vector<std::uint8_t>{0, 0, 1});
  CHECK(codec->encode_words(std::vector<std::string>{"ab", "", "b"}, 4).words ==
        std::vector<std::int64_t>{-1, 0, 0, 2});
}

TEST_CASE("added tokens are cut out with the white space beside them") {
  tokenizer_description description;
  unigram_description model;
  model.pieces = {{"<unk>", 0}, {"a", -1}, {"b", -1}, {" ", -2}, {"m", -3}};
  description.model = model;
  description.normalizer = {{normalizer_kind::lowercase, {}, {}}};
  added_token left{5, "[M]", true}, right{6, "<r>"}, both{7, "[M]M"}, word{8, "bb"}, lower{9, "Q"};
  left.strip_left = right.strip_right = true;
  word.single_word = true;
  lower.normalized = true;
  description.added = {left, right, both, word, lower};
  const auto codec = tokenizer::make(description);
  REQUIRE_MESSAGE(codec.ok(), codec.error());
  using ids = std::vector<token_id>;
  CHECK(codec->encode("a  [M] b") == ids{1, 5, 3, 2});
  CHECK(codec->encode("a <r>  b") == ids{1, 3, 6, 2});
  CHECK(codec->encode("<r> [M]") == ids{6, 5});
  CHECK(codec->encode("[M]M") == ids{7});
  CHECK(codec->encode("[M]m") == ids{5, 4});
  CHECK(codec->encode("bb bba abb") == ids{8, 3, 2, 2, 1, 3, 1, 2, 2});
  CHECK(codec->encode("aqAQ") == ids{1, 9, 1, 9});
  CHECK(codec->encode("") == ids{});
}
