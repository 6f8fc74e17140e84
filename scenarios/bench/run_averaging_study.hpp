// Runs a study of averaging: each of its strategies at each of its rates of failure
// (scenarios/bench/averaging.hpp), and judges what is expected of them.
#pragma once

#include "scenarios/bench/averaging.hpp"
#include "scenarios/programs/averaging_study.hpp"

namespace shoal::scenarios {

/// One strategy at one rate of failure.
struct study_cell {
  averaging_bench what;
  averaging_figures figures;
};

struct judged_expectation {
  study_expectation wanted;
  double rounds = 0, within = 0;  ///< the expected rounds, given or from the closed form
  std::optional<double> measured; ///< nothing if the study was stopped before
  bool met() const noexcept {
    return measured && *measured >= rounds - within && *measured <= rounds + within;
  }
};

struct study_hooks {
  /// As that of averaging_bench.
  std::function<bool(const program_progress& now)> progress;
  /// When a cell is done.
  std::function<void(const study_cell&)> on_cell;
};

struct study_figures {
  std::vector<study_cell> cells; ///< by failure, then by strategy
  std::vector<judged_expectation> expectations;
  bool stopped = false; ///< by `progress`
};

/// Errors: options that contradict each other; a defect of ours.
result<study_figures> run_averaging_study(const averaging_study& what, std::uint64_t seed,
                                          const study_hooks& hooks);

} // namespace shoal::scenarios
