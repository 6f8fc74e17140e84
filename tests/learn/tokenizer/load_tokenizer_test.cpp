// The other forms of tokenizers, against the tokens of the programs that they come from.
#include "kernels/learn/formats/llama2c_tokenizer.hpp"
#include "kernels/learn/tokenizer/load_tokenizer.hpp"
#include "tests/support/reference_data.hpp"
#include "tests/support/scratch_folder.hpp"
#include "tests/support/skip.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <cstring>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

using namespace shoal;
using namespace shoal::learn;

namespace {

std::vector<std::string> lines_of(const std::filesystem::path& path) {
  std::istringstream in(contents_of(path));
  std::vector<std::string> out;
  for (std::string line; std::getline(in, line);) out.push_back(line);
  return out;
}

std::vector<token_id> numbers_in(const std::string& line) {
  std::istringstream in(line);
  std::vector<token_id> out;
  for (token_id id = 0; in >> id;) out.push_back(id);
  return out;
}

/// How many lines of `texts` get the tokens in the same line of `ids`. All must.
void encodes(const text_codec& codec, const std::filesystem::path& texts,
             const std::filesystem::path& ids) {
  const auto lines = lines_of(texts), numbers = lines_of(ids);
  REQUIRE(lines.size() == numbers.size());
  CHECK(lines.size() >= 20);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    INFO(lines[i]);
    CHECK(codec.encode(lines[i]) == numbers_in(numbers[i]));
  }
  MESSAGE(lines.size() << " lines");
}

} // namespace

TEST_CASE("SentencePiece: published models give the tokens of spm_encode") {
  SHOAL_NEEDS_DATA(model, "spm_google/test_model.model");
  SHOAL_NEEDS_DATA(texts, "spm_google/first200.txt");
  SHOAL_NEEDS_DATA(ids, "spm_google/first200.ids");
  const auto google = load_tokenizer(model);
  REQUIRE_MESSAGE(google.ok(), google.error());
  CHECK(google->kind == "SentencePiece");
  CHECK(google->codec->vocabulary() == 1000);
  encodes(*google->codec, texts, ids);
  CHECK(google->codec->decode(google->codec->encode("This is a test.")) == "This is a test.");
}

TEST_CASE("SentencePiece: models trained on Bengali give the tokens of spm_encode") {
  SHOAL_NEEDS_DATA(texts, "oracle_vectors/spm_debian/input.txt");
  for (const std::string name : {"galpa_identity_2000", "galpa_bpe_2000"}) {
    const auto model = texts.parent_path() / (name + ".model");
    const auto codec = load_tokenizer(model);
    REQUIRE_MESSAGE(codec.ok(), codec.error());
    encodes(*codec->codec, texts, texts.parent_path() / (name + ".ids"));
  }
}

TEST_CASE("llama2.c: a text gets the tokens of the published model, and comes back") {
  SHOAL_NEEDS_DATA(path, "stories260K/tok512.bin");
  SHOAL_NEEDS_DATA(expected, "oracle_vectors/stories260K_greedy.json");
  const auto codec = load_tokenizer(path);
  REQUIRE_MESSAGE(codec.ok(), codec.error());
  CHECK(codec->codec->vocabulary() == 512);
  const auto greedy = nlohmann::json::parse(contents_of(expected));
  const auto ids = greedy.at("greedy_ids").get<std::vector<token_id>>();
  const auto text = greedy.at("greedy_text").get<std::string>();
  CHECK(codec->codec->decode(ids) == text);
  // The text that the model wrote is encoded as it was written, but for the first token.
  auto written = ids;
  if (written.front() == 1) written.erase(written.begin());
  CHECK(codec->codec->encode(text) == written);
  // A character that is no token becomes its bytes, numbers 3 to 258.
  CHECK(codec->codec->decode(codec->codec->encode("a\n\u0995!")) == "a\n\u0995!");
}

TEST_CASE("llama2.c: the pair of the best score is joined first and the first of equals") {
  std::string file(4, '\0');
  const auto add = [&](const std::string& token, float score) {
    const auto length = static_cast<std::int32_t>(token.size());
    char head[8];
    std::memcpy(head, &score, 4);
    std::memcpy(head + 4, &length, 4);
    file.append(head, 8).append(token);
  };
  for (const char* special : {"<unk>", "<s>", "</s>"}) add(special, 0);
  constexpr const char* digits = "0123456789ABCDEF";
  for (int i = 0; i < 256; ++i) add(std::string("<0x") + digits[i / 16] + digits[i % 16] + ">", 0);
  for (const auto& [token, score] : std::vector<std::pair<std::string, float>>{
           {" ", 0}, {"a", 0}, {"b", 0}, {"ab", 1}, {"ba", 2}, {"aba", 3}})
    add(token, score);
  const scratch_folder here;
  const auto codec = load_tokenizer(here.write("t.bin", file));
  REQUIRE_MESSAGE(codec.ok(), codec.error());
  // " abab": "ba" comes before "ab", and "aba" joins a and "ba".
  CHECK(codec->codec->encode("abab") == std::vector<token_id>{259, 264, 261});
  CHECK(codec->codec->decode(codec->codec->encode("abab")) == "abab");
}

TEST_CASE("a path that has no tokenizer gets an error that says what is missing") {
  const scratch_folder here;
  CHECK(load_tokenizer("/nowhere").error() ==
        "tokenizer: '/nowhere' cannot be opened: No such file or directory");
  CHECK(load_tokenizer(here.path).error().starts_with("tokenizer: '" + here.path.string() +
                                                      "' is a folder without a tokenizer: "));
  const auto text = here.write("a.model", "no model");
  CHECK(load_tokenizer(text).error().starts_with("tokenizer: '" + text +
                                                 "' is no model of SentencePiece; "));
  CHECK(!load_tokenizer(here.write("b.model", "")).ok());
  const auto bin = here.write("t.bin", std::string("\7\0\0\0\0\0\0\0\1\0\0\0a\0\0", 15));
  CHECK(load_tokenizer(bin).error() == "tokenizer: '" + bin +
                                           "' is no tokenizer of llama2.c: it is truncated in "
                                           "token 1");
  const auto json = here.write("t.json", "{}");
  CHECK(load_tokenizer(json).error() ==
        "tokenizer: '" + json + "' is no tokenizer.json: it has no model");
}

TEST_CASE("bytes are a tokenizer") {
  const auto codec = load_tokenizer("bytes");
  REQUIRE(codec.ok());
  CHECK(codec->codec->encode("\xff a") == std::vector<token_id>{255, 32, 97});
}
