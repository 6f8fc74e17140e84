// Mistakes in the form of a scenario are named in plain words, in the line where they are.
#include "scenarios/schema/syntax.hpp"
#include "tests/scenarios/schema/files.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

using namespace shoal::scenarios;
using namespace shoal::scenarios::test;

namespace {

std::vector<std::filesystem::path> all_scenarios() {
  std::vector<std::filesystem::path> out;
  for (const char* folder : {"scenarios", "tests/scenarios/valid"})
    for (const auto& item : std::filesystem::recursive_directory_iterator(folder))
      if (item.path().extension() == ".yaml") out.push_back(item.path());
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> out;
  for (std::string line; std::getline(in, line);) out.push_back(line);
  return out;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string out;
  for (const auto& line : lines) out += line + "\n";
  return out;
}

/// The line, the message and the notes.
std::string said(const std::string& text) {
  const auto found = syntax_mistake(text, -1);
  if (!found) return "nothing";
  auto out = fmt::format("{}: {}", found->where.line, found->message);
  for (const auto& note : found->notes) out += "; " + note;
  return out;
}

} // namespace

TEST_CASE("a right scenario has no mistake of form") {
  const auto files = all_scenarios();
  REQUIRE(files.size() > 40);
  for (const auto& file : files) CHECK_MESSAGE(said(read_file(file)) == "nothing", file.string());
}

TEST_CASE("mistakes of form are told in plain words") {
  CHECK(said("stop_time: 1h\n   seed: 3\n") ==
        "2: YAML syntax: this is indented deeper than 'stop_time: 1h' in line 1, which has a value "
        "already; the block of line 1 has no spaces before its entries");
  CHECK(
      said("peers:\n  home:\n    count: 3\n   up: 10Mbit\n") ==
      "4: YAML syntax: 3 spaces before this line: no block has that indentation; the block begins "
      "in line 3 with 4 spaces; the block around it begins in line 2 with 2 spaces");
  CHECK(said("peers:\n\thome: 3\n") ==
        "2: YAML syntax: a tab at the start of the line: indent with spaces");
  CHECK(said("name: [a, b\nseed: 3\n") == "1: YAML syntax: this '[' is never closed");
  CHECK(said("peers: {home: {count: 3}\n\nseed: 3\n") ==
        "1: YAML syntax: this '{' is never closed");
  CHECK(said("peers: {home: [3}\n") ==
        "1: YAML syntax: this '}' meets a '['; which line 1, column 15 opens");
  CHECK(said("seed: 3\nstop_time:1h\n") ==
        "2: YAML syntax: a space is missing after the ':' of 'stop_time'");
  CHECK(said("name: a: b\n") == "1: YAML syntax: a second ':' in one value: put the value in "
                                "quotes, or the second key in a line of its own");
  CHECK(said("faults:\n  - kill: process\n    at: 3s\n  stop: 1s\n") ==
        "4: YAML syntax: a list goes on with '- ' before each item; the block begins in line 2");
  CHECK(said("seed: 3\n- kill: process\n") ==
        "2: YAML syntax: a list item among keys; the block begins in line 1");
  CHECK(said("a:\n  prompt: >-\n     one\n    two\n") ==
        "4: YAML syntax: 4 spaces before this line: neither as many as the text above has nor as "
        "few as its key; the text begins in line 3 with 5 spaces");
  CHECK(said("name: \"a\" b\n") == "1: YAML syntax: this text stands behind the closing quote");
}

TEST_CASE("a wrong indentation is found in its line or names it as where the block began") {
  std::size_t refused = 0, named = 0, near = 0;
  for (const auto& file : all_scenarios()) {
    const auto lines = lines_of(read_file(file));
    for (std::size_t i = 0; i < lines.size(); ++i) {
      const auto text = lines[i].find_first_not_of(' ');
      if (text == std::string::npos || lines[i][text] == '#') continue;
      for (const int shift : {-1, 1, 3}) {
        auto wrong = lines;
        if (shift < 0 && text == 0) continue;
        wrong[i] = shift < 0 ? lines[i].substr(1)
                             : std::string(static_cast<std::size_t>(shift), ' ') + lines[i];
        const auto document = parse_document(joined(wrong));
        if (document.root || document.problems.empty()) continue;
        ++refused;
        const auto& problem = document.problems.front();
        const auto mistake = syntax_mistake(joined(wrong), -1);
        named += mistake.has_value();
        const auto line = static_cast<int>(i) + 1;
        bool here = problem.where.line == line ||
                    problem.message.find(fmt::format("in line {},", line)) != std::string::npos;
        for (const auto& note : problem.notes)
          here = here || note.find(fmt::format("in line {} ", line)) != std::string::npos;
        near += here;
        if (!here || !mistake)
          MESSAGE(file.string(), ", line ", line, " by ", shift, ": ", problem.where.line, ": ",
                  problem.message);
      }
    }
  }
  REQUIRE(refused > 1000);
  CHECK(named == refused);
  CHECK(near == refused);
}
