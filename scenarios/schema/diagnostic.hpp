// What is wrong with a scenario, where, and what to do about it, in the form of a compiler:
//   s.yaml:12:5: error: unknown key 'bandwith' in peers.home
//       bandwith: 20Mbit
//       ^~~~~~~~
//   note: did you mean 'bandwidth'?
// Errors in a '--set' value name the setting instead of the file: '--set a.b=c: error: ...'.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::scenarios {

struct diagnostic {
  std::string file;         ///< or '--set a.b=c'; then line is 0
  int line = 0, column = 0; ///< 1-based, columns in bytes
  std::string message;
  std::vector<std::string> notes;
  std::string source_line; ///< without its line end; empty: not shown
  int length = 1;          ///< bytes that the caret underlines
  bool warning = false;
  bool operator==(const diagnostic&) const = default;
};

/// The text as above, ending in a newline. `colour`: ANSI colours, for terminals.
std::string render(const diagnostic& what, bool colour = false);

/// Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`.
/// Complexity: O(|a| |b|).
std::size_t edit_distance(std::string_view a, std::string_view b);

/// The candidate that was probably meant: the nearest one, unless half of its letters are wrong.
std::optional<std::string> closest(std::string_view word, std::span<const std::string> candidates);

} // namespace shoal::scenarios
