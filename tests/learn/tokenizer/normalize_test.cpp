#include "kernels/learn/tokenizer/normalize.hpp"
#include "kernels/learn/tokenizer/unicode.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace shoal::learn;

namespace {

std::string after(normalizer_kind kind, const std::string& text, const std::string& pattern = {},
                  const std::string& content = {}) {
  const normalizer_step steps[] = {{kind, pattern, content}};
  return normalize(text, steps);
}

} // namespace

TEST_CASE("Nmt drops control characters and makes spaces of marks without width") {
  CHECK(after(normalizer_kind::nmt, "a\x01\x0b\x7f\x1f"
                                    "b\tc\nd") == "ab c d");
  CHECK(after(normalizer_kind::nmt, "\u0995\u200c\u200d\ufeff\u2581x") == "\u0995    x");
  CHECK(after(normalizer_kind::nmt, std::string("a\0b", 3)) == std::string("a\0b", 3));
  CHECK(after(normalizer_kind::nmt, "\u008f\u0085") == "\u0085");
}

TEST_CASE("the forms of Unicode are ICU's") {
  CHECK(after(normalizer_kind::nfkc, "\ufb01\u00bd\uff21") == "fi1\u20442A");
  CHECK(after(normalizer_kind::nfc, "e\u0301") == "\u00e9");
  CHECK(after(normalizer_kind::nfd, "\u00e9") == "e\u0301");
  CHECK(after(normalizer_kind::nfkd, "\u00e9\ufb01") == "e\u0301fi");
  // These letters stay in two code points, because Unicode excludes them from composition.
  CHECK(after(normalizer_kind::nfkc, "\u09af\u09bc") == "\u09af\u09bc");
  CHECK(after(normalizer_kind::nfkc, "\u09df") == "\u09af\u09bc");
  CHECK(after(normalizer_kind::nfkc, "\u09c7\u09be") == "\u09cb");
}

TEST_CASE("lower case looks at each code point alone") {
  CHECK(after(normalizer_kind::lowercase, "A\u0391\u03a3 \u0130\u0995") ==
        "a\u03b1\u03c3 i\u0307\u0995");
}

TEST_CASE("replacements go from the left and do not see their own output") {
  CHECK(after(normalizer_kind::replace, "aaa|", "aa", "a") == "aa|");
  CHECK(after(normalizer_kind::replace, "x", "x", "") == "");
  CHECK(after(normalizer_kind::replace_space_runs, "a  b   c d  ", {}, "_") == "a_b_c d_");
  CHECK(after(normalizer_kind::replace_colon, "\u09e7\u09e6:\u09e9:: a:", {}, "\u0983") ==
        "\u09e7\u09e6\u0983\u09e9\u0983: a:");
  CHECK(after(normalizer_kind::prepend, "a", {}, "_") == "_a");
  CHECK(after(normalizer_kind::prepend, "", {}, "_") == "");
}

TEST_CASE("bytes that are no UTF-8 become the replacement character") {
  CHECK(after(normalizer_kind::nfc, "a\xff\xe0\xa6z\xed\xa0\x80") ==
        "a\ufffd\ufffd\ufffdz\ufffd\ufffd\ufffd");
  CHECK(normalize("a\xff", {}) == "a\xff");
  CHECK(unicode::is_valid("\u0995\U0001f600"));
  CHECK(!unicode::is_valid("\xc0\x80"));
  CHECK(unicode::decoded("a\U0001f600\xf5") == std::u32string{'a', 0x1f600, 0xfffd});
  for (const char32_t c : {0x7fu, 0x80u, 0x7ffu, 0x800u, 0xffffu, 0x10000u, 0x10ffffu}) {
    std::string text;
    unicode::append(text, c);
    CHECK(unicode::first_of(text).value == c);
    CHECK(unicode::first_of(text).bytes == text.size());
  }
}
