#include "netem/wire/clean_text.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace shoal::netem::wire;

TEST_CASE("text of another host: letters of any script stay as they are") {
  CHECK(clean_text("") == "");
  CHECK(clean_text("lab-3 (10.0.0.5:7000), ~ok") == "lab-3 (10.0.0.5:7000), ~ok");
  CHECK(clean_text("M\xC3\xBCnchen \xE2\x82\xAC \xF0\x9F\x90\x9F") ==
        "M\xC3\xBCnchen \xE2\x82\xAC \xF0\x9F\x90\x9F");
}

TEST_CASE("text of another host: it sends no commands to a terminal") {
  CHECK(clean_text("\x1B[31mred\x1B[0m") == "\\x1b[31mred\\x1b[0m");
  CHECK(clean_text("a\nerror: b\r\t") == "a\\x0aerror: b\\x0d\\x09");
  CHECK(clean_text(std::string("\0\x7F", 2)) == "\\x00\\x7f");
  CHECK(clean_text("\xC2\x9B"
                   "31m") == "\\xc2\\x9b31m"); // the C1 form of ESC [
  CHECK(clean_text("\xE2\x80\xAE"
                   "cod") == "\\xe2\\x80\\xae"
                             "cod");                      // right to left
  CHECK(clean_text("\xE2\x80\xA8") == "\\xe2\\x80\\xa8"); // a line separator
}

TEST_CASE("text of another host: bytes that are no UTF-8 are written as digits") {
  CHECK(clean_text("a\xFF\x80z") == "a\\xff\\x80z");
  CHECK(clean_text("\xC3") == "\\xc3");                            // cut
  CHECK(clean_text("\xC0\xAF") == "\\xc0\\xaf");                   // longer than necessary
  CHECK(clean_text("\xE0\x80\xAF") == "\\xe0\\x80\\xaf");          // the same with three bytes
  CHECK(clean_text("\xED\xA0\x80") == "\\xed\\xa0\\x80");          // half of a pair
  CHECK(clean_text("\xF4\x90\x80\x80") == "\\xf4\\x90\\x80\\x80"); // beyond the last
}

TEST_CASE("text of another host: a long text is cut between characters") {
  CHECK(clean_text("abcdef", 6) == "abcdef");
  CHECK(clean_text("abcdefg", 6) == "abcdef...");
  CHECK(clean_text("ab\x1B", 5) == "ab...");
  CHECK(clean_text("ab\xE2\x82\xAC", 4) == "ab...");
}
