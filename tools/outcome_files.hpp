// The files of a program that runs by itself (scenarios/programs/program.hpp): run.yaml,
// summary.json and charts.
#pragma once

#include "kernels/base/result.hpp"
#include "scenarios/observe/run_directory.hpp"
#include "scenarios/programs/program_run.hpp"
#include "scenarios/schema/scenario.hpp"

#include <string>

namespace shoal::tools {

/// Writes the files. `build`: the version of the program's sources. Errors: a file cannot be
/// written.
result<void> keep_outcome(const scenarios::run_directory& to, const scenarios::scenario& what,
                          const scenarios::program_outcome& outcome, const std::string& build);

} // namespace shoal::tools
