// Tables, charts and JSON of a study of averaging. 'shoal bench averaging' and 'shoal run' of a
// study print the same table.
#pragma once

#include "scenarios/bench/run_averaging_study.hpp"
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

/// The figures that all strategies share.
nlohmann::ordered_json head_json(const averaging_study& what, std::uint64_t seed);
/// All figures of one strategy at one failure.
nlohmann::ordered_json as_json(const study_cell& cell);

/// The outcome of the study as a run of the scenario `name`: summary, curves, and expectations
/// beside the measured rounds.
program_outcome outcome_of(const std::string& name, const averaging_study& what, std::uint64_t seed,
                           const study_figures& figures);

} // namespace shoal::scenarios
