// The runner builds the world of a scenario, runs it and returns the outcome.
#pragma once

#include "actors/host.hpp"
#include "kernels/base/result.hpp"
#include "scenarios/observe/run_observers.hpp"
#include "scenarios/observe/summary.hpp"
#include "scenarios/record/provenance.hpp"
#include "scenarios/runner/node.hpp"
#include "scenarios/runner/world.hpp"
#include "scenarios/schema/scenario.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace shoal::scenarios {

/// Status of a run in progress, for a live display.
struct live_status {
  run_progress progress;
  round_counts rounds;
  double wall_seconds = 0;
  std::uint64_t epochs_target = 0;
  duration stop_time{};
  const char* doing = "running"; ///< phase: 'running', 'ending' or 'baseline'
  bool virtual_time = true;      ///< false: times are on the wall clock
  /// How far one machine is with the same training; phase 'baseline'.
  struct comparison {
    std::uint64_t step = 0, steps = 0;
    double wall_seconds = 0;
  } reference = {};
};

/// The history of a run up to a moment: all events before `at`.
struct run_moment {
  duration at{};
  std::string event_hash; ///< hexadecimal
  std::uint64_t events = 0;
  double wall_seconds = 0; ///< that the way to the moment took
};

struct runner_options {
  std::string out; ///< run directory; empty: the run writes no files
  bool force = false;
  unsigned threads = 0;          ///< compute threads; 0: the number of cores
  std::string build;             ///< version of the program's sources, for run.yaml
  bool baseline = true;          ///< measure loss.baseline and loss.bigram
  std::optional<duration> until; ///< latest end of the run, virtual time
  /// From each of these moments on, all random streams of the run have the branch's seed. In order
  /// of time; only in sim.
  std::vector<run_branch> branches;
  /// The run stops at these moments and goes on at once; only in sim.
  std::vector<duration> moments;
  /// Called when the run has stopped at a moment or at a branch.
  std::function<void(const run_moment&)> on_moment;
  std::function<void(const live_status&)> on_status; ///< called about five times a second
  std::function<bool()> interrupted;                 ///< called as often; true ends the run cleanly
  /// Called once before the run begins, with the registry of the run's metrics.
  std::function<void(const std::shared_ptr<prometheus::Registry>&)> on_metrics;

  /// Compute no numbers. Messages and jobs keep the sizes and durations of the scenario.
  bool sizes_only = false;
  std::uint64_t end_at_epoch = 0;   ///< epoch at which the run ends at the latest; 0: no limit
  run_listener* listener = nullptr; ///< receives all rows of the run directory; outlives the runner

  std::optional<node_options> node; ///< options of this process, with world 'cluster'

  // For tests.
  std::string conduct; ///< conduct of all hosts (actors::conducts()); empty: the scenario's
  /// Called when a host takes a branch of actors/failpoints.hpp. May be empty.
  std::function<void(std::string_view branch)> on_failpoint;
  bool share_states = true;
  std::function<void(const actors::host&, const actors::observation&)> on_observation;
};

struct run_outcome {
  scenarios::summary summary;
  bool interrupted = false;
  /// The training of one machine was interrupted. The run itself is complete.
  bool comparison_ended = false;
  bool left_behind = false; ///< all other hosts of a cluster left before this peer's last epoch
  bool expectations_judged =
      true;        ///< false if the run ended early and the scenario has expectations
  distortion late; ///< emulate only
  std::vector<std::string> missed;                  ///< one sentence for each missed expectation
  std::string text_prompt, text_before, text_after; ///< text samples of a model that writes text
};

/// Returns the longest compute job of a peer that computes during rounds, be it for its next
/// contribution or for an audit. Such a peer finishes its current job before it applies an average
/// or follows the other peers. Zero if peers wait for their rounds and audit nobody.
duration job_before_following(const scenario& what);

class runner {
public:
  /// Reads data and builds the model. Errors: bad input (exit code 1).
  static result<std::unique_ptr<runner>> prepare(scenario what, runner_options options);
  ~runner();

  /// Measures one real step and returns advice if this machine is too slow for the emulation. The
  /// advice is a sentence with suitable --set arguments. Empty in sim and on a fast machine.
  std::string advice() const;

  /// Runs to the end and writes the run directory. Call once.
  /// Errors: the directory cannot be written, a compute job threw (exit code 3).
  result<run_outcome> run();

private:
  struct state;
  explicit runner(std::unique_ptr<state> s);
  std::unique_ptr<state> state_;
};

} // namespace shoal::scenarios
