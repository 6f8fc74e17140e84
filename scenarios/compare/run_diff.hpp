// Compares two runs: where their histories diverge, which metrics differ, and which options.
#pragma once

#include "kernels/base/result.hpp"
#include "scenarios/compare/history_diff.hpp"
#include "scenarios/compare/value_diff.hpp"
#include "scenarios/schema/option_diff.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace shoal::scenarios {

struct run_difference {
  std::string a, b;              ///< the directories, as given
  bool history_compared = false; ///< if false, `notes` says why
  bool finest = false;           ///< each delivered event was compared
  std::optional<divergence> history;
  std::string headline;                  ///< 'home-3 was killed in B', with the fault behind it
  std::vector<value_difference> metrics; ///< metrics that differ, hashes included
  std::vector<option_difference> options;
  std::vector<std::string> notes;

  /// Whether the runs have the same events and results. A difference in options alone does not
  /// count: an option that matters changes events or results.
  bool same() const noexcept { return !history && metrics.empty(); }
};

/// Errors: one path is no directory of a run, or a file in it is missing or damaged. The message
/// names it.
result<run_difference> diff_runs(const std::filesystem::path& a, const std::filesystem::path& b);

/// The differences for people; ends in a newline.
std::string to_text(const run_difference& what);
std::string to_json(const run_difference& what);

} // namespace shoal::scenarios
