// 'shoal run' of a scenario with `averaging_study`: the table of 'shoal bench averaging' for each
// failure, what was expected, and a directory with run.yaml, summary.json and curves.svg.
#pragma once

#include "scenarios/schema/scenario.hpp"

#include <string>

namespace shoal::tools {

struct study_run_options {
  std::string out;    ///< empty: nothing is kept
  bool force = false; ///< replace the files of an earlier run in `out`
  bool json = false, quiet = false;
};

/// Returns the exit code. Requires: what.study.
int run_study(const scenarios::scenario& what, const study_run_options& options);

} // namespace shoal::tools
