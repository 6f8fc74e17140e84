// What a study of averaging shows: 'shoal bench averaging' and 'shoal run' of a study print the
// same table.
#pragma once

#include "scenarios/bench/averaging_study.hpp"
#include "scenarios/programs/program_run.hpp"

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace shoal::scenarios {

/// Runs the study and prints a table for each failure, its rows as they come. Errors: those of
/// run_averaging_study.
result<study_figures> run_with_tables(const averaging_study& what, std::uint64_t seed,
                                      const program_hooks& hooks);

/// How the distortion falls by round, and what it cost.
std::string curves_text(const study_cell& cell);
/// A panel for each failure.
outcome_chart curves_chart(const averaging_study& what, const std::vector<study_cell>& cells);

/// What the whole study has in common.
nlohmann::ordered_json head_json(const averaging_study& what, std::uint64_t seed);
/// All figures of one strategy at one failure.
nlohmann::ordered_json as_json(const study_cell& cell);

/// What the study `name` comes to as a run of a scenario: its summary, its curves, and what was
/// expected of it beside what was measured.
program_outcome outcome_of(const std::string& name, const averaging_study& what, std::uint64_t seed,
                           const study_figures& figures);

} // namespace shoal::scenarios
