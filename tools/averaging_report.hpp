// What a study of averaging shows: 'shoal bench averaging' and 'shoal run' of a study print the
// same table.
#pragma once

#include "scenarios/bench/averaging_study.hpp"

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <vector>

namespace shoal::tools {

struct study_output {
  bool json = false;  ///< nothing is printed while it runs
  bool quiet = false; ///< no progress on stderr
};

/// Runs the study on the terminal: a table for each failure, its rows as they come, and progress on
/// stderr. Ends early by Ctrl-C. Errors: those of run_averaging_study.
result<scenarios::study_figures> run_study_on_terminal(const scenarios::averaging_study& what,
                                                       std::uint64_t seed,
                                                       const study_output& output);

/// How the distortion falls by round, and what it cost.
std::string curves_text(const scenarios::study_cell& cell);
/// Measured against expected; empty without expectations.
std::string expectations_text(const std::vector<scenarios::judged_expectation>& expectations);
/// A panel for each failure.
std::string curves_svg(const scenarios::averaging_study& what,
                       const std::vector<scenarios::study_cell>& cells);

/// What the whole study has in common.
nlohmann::ordered_json head_json(const scenarios::averaging_study& what, std::uint64_t seed);
/// All figures of one strategy at one failure.
nlohmann::ordered_json as_json(const scenarios::study_cell& cell);
nlohmann::ordered_json as_json(const scenarios::judged_expectation& expectation);

} // namespace shoal::tools
