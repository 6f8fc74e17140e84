#include "tools/terminal.hpp"

#include <doctest/doctest.h>

using namespace shoal::tools;

TEST_CASE("a text on one line shows its line feeds and where it was cut") {
  CHECK(one_line("a\nb", 10) == "a⏎b");
  CHECK(one_line("abc", 3) == "abc");
  CHECK(one_line("abcd", 3) == "ab…");
  CHECK(one_line("\n\n\n\n", 3) == "⏎⏎…");
  CHECK(one_line("", 1).empty());
}

TEST_CASE("times have the two or three parts that matter") {
  CHECK(clock_text(42.9) == "42s");
  CHECK(clock_text(185) == "3m05s");
  CHECK(clock_text(3607) == "1h00m07s");
  CHECK(clock_text(51 * 3600) == "2d03h");
}
