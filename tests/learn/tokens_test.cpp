// kernels/learn/tokens and text_codec: tokens in the bytes of samples, for vocabularies of every
// width.
#include "kernels/learn/text_codec.hpp"
#include "kernels/learn/tokens.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace shoal;
using namespace shoal::learn;

namespace {

constexpr std::int64_t largest = std::int64_t{1} << 31;

std::vector<std::byte> encoded(const std::vector<token_id>& ids, std::int64_t vocabulary) {
  std::vector<std::byte> out(ids.size() * token_bytes(vocabulary));
  encode_tokens(ids, vocabulary, out);
  return out;
}

} // namespace

TEST_CASE("a token has the fewest bytes of 1, 2 and 4 that hold the vocabulary") {
  CHECK(token_bytes(1) == 1);
  CHECK(token_bytes(256) == 1);
  CHECK(token_bytes(257) == 2);
  CHECK(token_bytes(65536) == 2);
  CHECK(token_bytes(65537) == 4);
  CHECK(token_bytes(largest) == 4);
}

TEST_CASE("tokens are little-endian numbers, and come back from their bytes") {
  CHECK(encoded({0x0102}, 32000) == std::vector{std::byte{2}, std::byte{1}});
  CHECK(encoded({0x01020304}, largest) ==
        std::vector{std::byte{4}, std::byte{3}, std::byte{2}, std::byte{1}});
  for (const std::int64_t vocabulary :
       {std::int64_t{7}, std::int64_t{256}, std::int64_t{32000}, std::int64_t{65537}, largest}) {
    const std::vector<token_id> ids{0, 1, vocabulary / 2, vocabulary - 1};
    const auto bytes = encoded(ids, vocabulary);
    CHECK(check_tokens(bytes, vocabulary).ok());
    std::vector<token_id> back(ids.size());
    decode_tokens(bytes, vocabulary, back);
    CHECK(back == ids);
  }
}

TEST_CASE("bytes that are no tokens of the vocabulary are refused with their place") {
  CHECK(check_tokens(encoded({3, 31999, 32000, 40000}, 65536), 32000).error() ==
        "tokens: number 2 is 32000; the vocabulary has 32000");
  CHECK(check_tokens(std::vector<std::byte>(3), 32000).error() ==
        "tokens: 3 bytes are no tokens of 2 bytes each");
  CHECK(check_tokens(std::vector<std::byte>(4, std::byte{255}), largest).error() ==
        "tokens: number 0 is 4294967295; the vocabulary has 2147483648");
  CHECK(!check_tokens(std::vector<std::byte>{std::byte{7}}, 7).ok());
  for (int byte = 0; byte < 256; ++byte)
    CHECK(check_tokens(std::vector{static_cast<std::byte>(byte)}, 256).ok());
  CHECK(check_tokens({}, 32000).ok());
}

TEST_CASE("the byte codec gives each byte its own token") {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all.push_back(static_cast<char>(byte));
  const auto tokens = byte_codec().encode(all);
  for (int byte = 0; byte < 256; ++byte) CHECK(tokens[static_cast<std::size_t>(byte)] == byte);
  CHECK(byte_codec().decode(tokens) == all);
  CHECK(byte_codec().vocabulary() == 256);
}
