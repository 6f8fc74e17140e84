#include "kernels/learn/tokenizer/split.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace shoal::learn;

namespace {

using strings = std::vector<std::string>;

strings pieces(const std::string& text, const std::vector<splitter>& by, bool is_first = true) {
  const auto cut = split(text, by, is_first);
  strings out;
  for (const auto& each : cut.pieces) out.emplace_back(cut.at(each));
  return out;
}

splitter of(splitter_kind kind) {
  splitter out;
  out.kind = kind;
  return out;
}

} // namespace

TEST_CASE("metaspace marks spaces and cuts before each mark") {
  auto how = of(splitter_kind::metaspace);
  how.mark = "_";
  CHECK(pieces("", {how}) == strings{});
  CHECK(pieces("a", {how}) == strings{"_a"});
  CHECK(pieces("a b", {how}) == strings{"_a", "_b"});
  CHECK(pieces(" a  b ", {how}) == strings{"_a", "_", "_b", "_"});
  CHECK(pieces("_a", {how}) == strings{"_a"});
  how.prepend = splitter::prefix::first;
  CHECK(pieces("a b", {how}, false) == strings{"a", "_b"});
  CHECK(pieces("a b", {how}, true) == strings{"_a", "_b"});
  how.prepend = splitter::prefix::never;
  CHECK(pieces("a b", {how}) == strings{"a", "_b"});
  how.cut = false;
  CHECK(pieces("a b", {how}) == strings{"a_b"});
}

TEST_CASE("digits and punctuation stand alone") {
  auto digits = of(splitter_kind::digits);
  CHECK(pieces("a12b\u0969\u2167", {digits}) == strings{"a", "1", "2", "b", "\u0969", "\u2167"});
  digits.individual = false;
  CHECK(pieces("a12b\u0969", {digits}) == strings{"a", "12", "b", "\u0969"});
  const auto signs = of(splitter_kind::punctuation);
  CHECK(pieces("a,,b$\u0964", {signs}) == strings{"a", ",", ",", "b", "$", "\u0964"});
  CHECK(pieces("1,2", {digits, signs}) == strings{"1", ",", "2"});
}

TEST_CASE("byte level cuts words as GPT-2 does") {
  auto how = of(splitter_kind::byte_level);
  // U+0120 is the space, U+010A the line feed.
  CHECK(pieces("I'll go", {how}) == strings{"I", "'ll", "\u0120go"});
  CHECK(pieces("a  b", {how}) == strings{"a", "\u0120", "\u0120b"});
  CHECK(pieces("a \n\nb", {how}) == strings{"a", "\u0120\u010a", "\u010a", "b"});
  CHECK(pieces("b  ", {how}) == strings{"b", "\u0120\u0120"});
  CHECK(pieces("x1 22!? ", {how}) == strings{"x", "1", "\u012022", "!?", "\u0120"});
  CHECK(pieces("'sa's", {how}) == strings{"'s", "a", "'s"});
  how.add_prefix_space = true;
  CHECK(pieces("a", {how}) == strings{"\u0120a"});
  how.cut = false;
  CHECK(pieces("a b", {how}) == strings{"\u0120a\u0120b"});
}

TEST_CASE("white space is dropped between words") {
  CHECK(pieces(" a\tb \u00a0c ", {of(splitter_kind::whitespace)}) == strings{"a", "b", "c"});
}

TEST_CASE("each byte has a printable character of its own") {
  for (int byte = 0; byte < 256; ++byte) {
    const auto c = byte_characters()[static_cast<std::size_t>(byte)];
    CHECK(byte_of_character(c) == byte);
    CHECK(c > ' ');
  }
  CHECK(byte_characters()[' '] == 0x120);
  CHECK(byte_of_character(' ') == -1);
  CHECK(byte_of_character(0x1f600) == -1);
}
