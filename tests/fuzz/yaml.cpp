// The first half of reading a scenario: text to a tree. The tree's own figures have to be true.
#include "scenarios/schema/document.hpp"
#include "tests/fuzz/targets.hpp"

#include <algorithm>

namespace shoal::fuzz {

namespace {

using namespace scenarios;

/// Levels below and with it. Shared nodes are walked once for each path: the tree is as small as it
/// says.
std::uint32_t height_of(const node& what, std::uint64_t& weight) {
  must(++weight <= max_nodes, "a tree is as small as it is said to be");
  std::uint32_t below = 0;
  for (const auto& item : what.items) below = std::max(below, height_of(*item, weight));
  for (const auto& each : what.entries) {
    must(first_bad_byte(each.key) == std::string_view::npos || !each.key.empty(), "keys are text");
    must(what.find(each.key) == &each, "no key twice");
    below = std::max(below, height_of(*each.value, weight));
  }
  return below + 1;
}

} // namespace

void yaml(bytes input) {
  const auto read = parse_document(text_of(input));
  must(read.root != nullptr || !read.problems.empty(), "a tree, or what is wrong");
  for (const auto& problem : read.problems) {
    must(problem.where.line >= 1 && problem.where.column >= 1, "problems have a place");
    must(!problem.message.empty(), "problems have words");
  }
  if (!read.root || !read.problems.empty()) return;
  std::uint64_t weight = 0;
  must(height_of(*read.root, weight) <= max_nesting + 1, "no deeper than allowed");
}

} // namespace shoal::fuzz
