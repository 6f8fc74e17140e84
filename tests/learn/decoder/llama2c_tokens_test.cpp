#include "kernels/learn/formats/llama2c_tokens.hpp"
#include "tests/learn/decoder/stories.hpp"
#include "tests/support/reference_data.hpp"
#include "tests/support/skip.hpp"

#include <cstring>

using namespace shoal;
using namespace shoal::learn;

namespace {

/// A tokenizer file with the 259 special tokens and these.
std::string file_of(const std::vector<std::pair<std::string, float>>& pieces) {
  std::string out(4, '\0');
  const auto add = [&](const std::string& piece, float score) {
    const auto length = static_cast<std::int32_t>(piece.size());
    char head[8];
    std::memcpy(head, &score, 4);
    std::memcpy(head + 4, &length, 4);
    out.append(head, 8).append(piece);
  };
  for (const char* special : {"<unk>", "\n<s>\n", "\n</s>\n"}) add(special, 0);
  constexpr const char* digits = "0123456789ABCDEF";
  for (int i = 0; i < 256; ++i) add(std::string("<0x") + digits[i / 16] + digits[i % 16] + ">", 0);
  for (const auto& [piece, score] : pieces) add(piece, score);
  return out;
}

} // namespace

TEST_CASE("the published text is the decoded tokens and its beginning encodes to them") {
  SHOAL_NEEDS_DATA(file, "stories260K/tok512.bin");
  SHOAL_NEEDS_DATA(fixture, "oracle_vectors/stories260K_greedy.json");
  const auto codec = llama2c_tokens::load(file, 512);
  REQUIRE_MESSAGE(codec.ok(), codec.error());
  const auto known = test::published(fixture);
  const auto ids = known["greedy_ids"].get<std::vector<token_id>>();
  CHECK(codec->decode(ids) == known["greedy_text"].get<std::string>());
  CHECK(codec->encode("Once upon a time") == std::vector<token_id>(ids.begin(), ids.begin() + 5));
  CHECK(codec->encode("") == std::vector<token_id>{1});
  const std::string any = "caf\xC3\xA9 \xF0\x9F\x98\x80 \xFF";
  CHECK(codec->decode(codec->encode(any)) == any);
}

TEST_CASE("the pair of the best score is merged first and the first of equals") {
  const auto bytes = file_of({{" ", 0}, {"a", 0}, {"b", 0}, {"ab", 1}, {"ba", 2}, {"aba", 3}});
  const auto codec = llama2c_tokens::read(bytes, 265, "t");
  REQUIRE_MESSAGE(codec.ok(), codec.error());
  // " abab": "ba" comes before "ab", and "aba" joins a and "ba".
  CHECK(codec->decode(codec->encode("abab")) == "abab");
  CHECK(codec->encode("abab") == std::vector<token_id>{1, 259, 264, 261});
}

TEST_CASE("files that are no tokenizer of the model are refused with the reason") {
  const auto bytes = file_of({{" ", 0}});
  CHECK(llama2c_tokens::read(bytes, 260, "t").ok());
  CHECK(llama2c_tokens::read(bytes, 512, "t").error() ==
        "tokenizer: 't' has 260 tokens; the model has 512");
  CHECK(llama2c_tokens::read("ab", 260, "t").error() ==
        "tokenizer: 't' is too short for a tokenizer of llama2.c");
  for (std::size_t cut = 5; cut < 60; ++cut)
    CHECK(!llama2c_tokens::read(std::string_view(bytes).substr(0, cut), 260, "t").ok());
  std::string negative = bytes.substr(0, 12);
  negative[11] = '\xFF';
  CHECK(llama2c_tokens::read(negative, 260, "t").error() == "tokenizer: 't' ends inside token 0");
}
