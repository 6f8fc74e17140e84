// Diagnostics of a scenario file, in the format of a compiler:
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
  std::string file;         ///< file name, or '--set a.b=c' with line 0
  int line = 0, column = 0; ///< 1-based, columns in bytes
  std::string message;
  std::vector<std::string> notes;
  std::string source_line; ///< text of the line without its line end; empty: not shown
  int length = 1;          ///< bytes that the caret underlines
  bool warning = false;
  bool operator==(const diagnostic&) const = default;
};

/// Formats a diagnostic as above, with a final newline. `colour` adds ANSI colours for terminals.
std::string render(const diagnostic& what, bool colour = false);

/// Edit distance: insertions, deletions, replacements and swaps of neighbours from `a` to `b`.
/// Complexity: O(|a| |b|).
std::size_t edit_distance(std::string_view a, std::string_view b);

/// The candidate with the smallest edit distance to `word`, or nothing if all are too far away.
std::optional<std::string> closest(std::string_view word, std::span<const std::string> candidates);

/// The question whether the candidate closest to `word` was meant, or `otherwise` if none is close.
std::string did_you_mean(std::string_view word, std::span<const std::string> candidates,
                         std::string otherwise = {});
/// That question as the notes of a diagnostic: one, or none.
std::vector<std::string> meant_notes(std::string_view word,
                                     std::span<const std::string> candidates);

} // namespace shoal::scenarios
