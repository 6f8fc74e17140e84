// The files of a program that runs by itself (scenarios/programs/program.hpp).
#pragma once

#include "kernels/base/result.hpp"
#include "scenarios/observe/run_directory.hpp"
#include "scenarios/programs/program_run.hpp"
#include "scenarios/schema/scenario.hpp"

#include <string>

namespace shoal::tools {

/// Writes summary.json, the charts, and report.html with the text that was printed. `command`
/// repeats the outcome. Errors: a file cannot be written.
result<void> keep_outcome(const scenarios::run_directory& to, const std::string& title,
                          const scenarios::program_outcome& outcome, const std::string& printed,
                          const std::string& command);

/// The same for a run of a scenario, with run.yaml. `build`: the version of the program's sources.
result<void> keep_run(const scenarios::run_directory& to, const scenarios::scenario& what,
                      const scenarios::program_outcome& outcome, const std::string& printed,
                      const std::string& build);

} // namespace shoal::tools
