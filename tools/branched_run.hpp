// shoal run RUN --from TIME: continues the run of a run directory from one of its moments. The way
// to the moment is repeated, because a world cannot be stored: its actors, timers and jobs have no
// form outside of the process.
#pragma once

#include "kernels/base/result.hpp"
#include "scenarios/compare/replay.hpp"
#include "scenarios/runner/runner.hpp"
#include "tools/scratch_directory.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace shoal::tools {

/// Warns on stderr of what changed since the run, because this may explain a difference. Returns
/// exit_ok, or another status after printing the error.
int warn_of_changes(const scenarios::replay_plan& plan);

class branched_run {
public:
  /// `from`: the moment, as in '12min'. Errors: `directory` holds no run that can be continued;
  /// `from` is no time within the run.
  static result<branched_run> plan(const std::string& directory, const std::string& from,
                                   std::optional<std::uint64_t> seed_after);

  /// The scenario of the run. Call it once.
  scenarios::scenario take_scenario() { return std::move(plan_.run.what); }
  const scenarios::replay_plan& recorded() const noexcept { return plan_.run; }

  /// Sets the branches, the end, and a run directory if the options have none: the comparison reads
  /// files. Errors: the run directory is that of the run; no temporary directory.
  /// Requires: this outlives the run.
  result<void> apply(scenarios::runner_options& into);

  /// Compares the continued run with the recorded one, and prints the result on stdout, or on
  /// stderr if `quiet`. Returns an exit code.
  int finish(const scenarios::run_outcome& outcome, bool quiet) const;

private:
  branched_run(std::string directory, duration from, scenarios::branch_plan plan)
      : directory_(std::move(directory)), from_(from), plan_(std::move(plan)) {}

  std::string directory_, out_;
  duration from_;
  scenarios::branch_plan plan_;
  std::optional<scratch_directory> scratch_;
  std::optional<scenarios::run_moment> reached_;
};

} // namespace shoal::tools
