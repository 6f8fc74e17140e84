#include "scenarios/schema/diagnostic.hpp"

#include <doctest/doctest.h>

using namespace shoal::scenarios;

TEST_CASE("a diagnostic is rendered like a compiler's, with the source line and a caret") {
  diagnostic what;
  what.file = "s.yaml";
  what.line = 12;
  what.column = 5;
  what.message = "unknown key 'bandwith' in peers.home";
  what.notes = {"did you mean 'bandwidth'?"};
  what.source_line = "    bandwith: 20Mbit";
  what.length = 8;
  CHECK(render(what) == "s.yaml:12:5: error: unknown key 'bandwith' in peers.home\n"
                        "    bandwith: 20Mbit\n"
                        "    ^~~~~~~~\n"
                        "note: did you mean 'bandwidth'?\n");
  what.warning = true;
  CHECK(render(what).starts_with("s.yaml:12:5: warning: "));
  CHECK(render(what, true).find("\x1b[") != std::string::npos);
}

TEST_CASE("the caret stands under its column after tabs and letters of several bytes") {
  diagnostic what;
  what.file = "s.yaml";
  what.line = 1;
  what.column = 6;
  what.source_line = "\té: x";
  CHECK(render(what).ends_with("\té: x\n\t   ^\n"));
}

TEST_CASE("a diagnostic of a setting names the setting and shows no line") {
  diagnostic what;
  what.file = "--set averaging.group_size=0";
  what.message = "no";
  CHECK(render(what) == "--set averaging.group_size=0: error: no\n");
}

TEST_CASE("control characters of a file do not reach the terminal") {
  diagnostic what;
  what.file = "s.yaml";
  what.message = "unknown key '\x1b[31m'";
  CHECK(render(what).find('\x1b') == std::string::npos);
}

TEST_CASE("the edit distance counts insertions, deletions, replacements and swaps") {
  CHECK(edit_distance("", "") == 0);
  CHECK(edit_distance("", "abc") == 3);
  CHECK(edit_distance("bandwith", "bandwidth") == 1);
  CHECK(edit_distance("kitten", "sitting") == 3);
  CHECK(edit_distance("sede", "seed") == 1);
}

TEST_CASE("a guess is made only when it is near") {
  const std::vector<std::string> known{"seed", "name", "bandwidth"};
  CHECK(closest("bandwith", known) == "bandwidth");
  CHECK(closest("sede", known) == "seed");
  CHECK_FALSE(closest("colour", known).has_value());
  CHECK_FALSE(closest("x", std::vector<std::string>{"y"}).has_value());
}
