// Loading a file with any bytes ends with a scenario or with errors, soon and without a crash.
#include "kernels/base/rng.hpp"
#include "tests/scenarios/schema/files.hpp"

#include <doctest/doctest.h>

using namespace shoal;
using namespace shoal::scenarios;
using namespace shoal::scenarios::test;

namespace {

std::string mutated(std::string text, rng& draw) {
  static const std::vector<std::string> pieces{"{",
                                               "}",
                                               "[",
                                               "]",
                                               ": ",
                                               "- ",
                                               "\n",
                                               "  ",
                                               "\t",
                                               "&a ",
                                               "*a",
                                               "<<: ",
                                               "!!str ",
                                               "\"",
                                               "'",
                                               "|",
                                               ">",
                                               "#",
                                               "? ",
                                               "---\n",
                                               "...\n",
                                               "%",
                                               "0",
                                               "-1",
                                               "1e309",
                                               "nan",
                                               "99999999999999999999",
                                               "Mbit",
                                               "ms",
                                               "%%",
                                               "\xff",
                                               "\xc3",
                                               "null",
                                               "~",
                                               "peers",
                                               "faults",
                                               "9223372036854775807d",
                                               std::string(1, '\0'),
                                               "\r\n",
                                               "\xef\xbb\xbf"};
  const std::uint64_t edits = 1 + draw.below(4);
  for (std::uint64_t i = 0; i < edits; ++i) {
    const std::size_t at = text.empty() ? 0 : draw.below(text.size());
    const std::size_t length = draw.below(12);
    switch (draw.below(5)) {
    case 0:
      text.erase(at, length);
      break;
    case 1:
      text.insert(at, pieces[draw.below(pieces.size())]);
      break;
    case 2:
      text.replace(at, std::min<std::size_t>(length, 3), pieces[draw.below(pieces.size())]);
      break;
    case 3:
      if (!text.empty()) text[at] = static_cast<char>(draw.below(128));
      break;
    case 4: { // a line moves
      const std::size_t start = text.rfind('\n', at) + 1;
      const std::size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
      if (end <= start) break;
      const std::string line = text.substr(start, end - start);
      if (draw.below(2) == 0) text.erase(start, end - start);
      text.insert(text.empty() ? 0 : draw.below(text.size()), line);
      break;
    }
    }
  }
  return text;
}

/// Ends, with exactly one of a value and errors; and a value survives printing.
void must_end(const std::string& text, std::span<const std::string> sets = {}) {
  const load_result result = load_text(text, "scenarios/m.yaml", sets);
  REQUIRE(result.value.has_value() == result.errors.empty());
  for (const diagnostic& what : result.errors) REQUIRE_FALSE(render(what, true).empty());
  if (!result.value) return;
  const std::string printed = to_yaml(*result.value);
  const load_result again = load_text(printed, "scenarios/m.yaml");
  REQUIRE_MESSAGE(again.value.has_value(), printed << rendered(again));
  REQUIRE_MESSAGE(*again.value == *result.value, printed);
}

} // namespace

TEST_CASE("random changes to a valid file never crash the loader") {
  for (const char* file : {"scenarios/quickstart.yaml", "tests/scenarios/valid/everything.yaml"}) {
    const std::string text = read_file(file);
    REQUIRE_FALSE(text.empty());
    for (std::uint64_t i = 0; i < 800; ++i) {
      rng draw = stream(7, file, i);
      must_end(mutated(text, draw));
    }
  }
}

TEST_CASE("random settings never crash the loader") {
  const std::vector<std::string> seeds{"peers.home.count=8", "data.files=[a,b]",
                                       "faults.0.at=3s",     "expect.loss.final.max=3",
                                       "peers={}",           "devices.laptop=\"x\""};
  const std::string text = read_file("scenarios/quickstart.yaml");
  for (std::uint64_t i = 0; i < 400; ++i) {
    rng draw = stream(11, "sets", i);
    const std::vector<std::string> sets{mutated(seeds[draw.below(seeds.size())], draw),
                                        seeds[draw.below(seeds.size())]};
    must_end(text, sets);
  }
}

TEST_CASE("a file over one MiB is refused") {
  const load_result result =
      load_text(small("description: " + std::string(1 << 20, 'x') + "\n"), "s.yaml");
  CHECK(rendered(result) == "s.yaml:1:1: error: longer than 1048576 bytes\nstop_time: 1h\n^\n");
}

TEST_CASE("deep nesting ends with an error") {
  for (const char* open : {"[", "{", "- ", "? ", "{a: ", "[[", "&a [", "a: {"}) {
    std::string text;
    while (text.size() < 100'000) text += open;
    INFO(open);
    const load_result result = load_text(text, "s.yaml");
    CHECK_FALSE(result.value.has_value());
    CHECK_FALSE(result.errors.empty());
  }
}

TEST_CASE("aliases that multiply end with an error") {
  std::string text = "x-0: &a0 [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]\n";
  std::string merges = "x-0: &a0 {k: v}\n";
  for (int i = 1; i < 20; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    std::string list = before;
    for (int j = 0; j < 9; ++j) list += ", " + before;
    text += "x-" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + list + "]\n";
    merges += "x-" + std::to_string(i) + ": &a" + std::to_string(i) + " {k" + std::to_string(i) +
              ": [" + list + "], <<: [" + list + "]}\n";
  }
  CHECK(rendered(load_text(text, "s.yaml")).find("counting what aliases expand to") !=
        std::string::npos);
  CHECK_FALSE(load_text(merges, "s.yaml").value.has_value());
}

TEST_CASE("a chain of aliases cannot nest deeper than brackets can") {
  std::string text = "x-0: &a0 [1]\n";
  for (int i = 1; i < 20'000; ++i)
    text += "x-" + std::to_string(i) + ": &a" + std::to_string(i) + " [*a" + std::to_string(i - 1) +
            "]\n";
  CHECK(rendered(load_text(text, "s.yaml")).find("nested deeper than 32 levels") !=
        std::string::npos);
}

TEST_CASE("an alias inside its own anchor is an error") {
  CHECK(rendered(load_text("x-a: &a [1, *a]\n", "s.yaml")).find("inside the value that it names") !=
        std::string::npos);
}

TEST_CASE("a flood of mistakes is cut off") {
  std::string text = small();
  for (int i = 0; i < 5'000; ++i) text += "k" + std::to_string(i) + ": 1\n";
  CHECK(load_text(text, "s.yaml").errors.size() == 100);
}

TEST_CASE("as many mistakes in one line as fit end soon") {
  std::string text = "{";
  while (text.size() < (1 << 19)) text += "a,";
  const load_result result = load_text(text, "s.yaml");
  CHECK(result.errors.size() == 100);
  CHECK(rendered(result).size() < 20'000);
}
