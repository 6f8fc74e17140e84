// shoal run --check-determinism: runs the scenario a second time. Both runs must have the same
// history and end in the same state.
#pragma once

#include "kernels/base/result.hpp"
#include "scenarios/runner/runner.hpp"
#include "tools/scratch_directory.hpp"

#include <string>

namespace shoal::tools {

class determinism_check {
public:
  /// Prepares the first run: it records every event, in a temporary directory unless `options`
  /// names another. Errors: a world on the wall clock; no temporary directory.
  static result<determinism_check> begin(scenarios::scenario& what,
                                         scenarios::runner_options& options);

  /// Runs a second time, without the baseline, and compares. Prints the result on stdout, or on
  /// stderr if `quiet`. Returns an exit code.
  int finish(const scenarios::run_outcome& first, bool quiet);

private:
  determinism_check(scratch_directory scratch, scenarios::scenario what,
                    scenarios::runner_options options)
      : scratch_(std::move(scratch)), what_(std::move(what)), options_(std::move(options)) {}

  scratch_directory scratch_;
  scenarios::scenario what_;
  scenarios::runner_options options_;
};

} // namespace shoal::tools
