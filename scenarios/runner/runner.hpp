// Builds the world that a scenario describes, runs it, and says what came of it.
#pragma once

#include "actors/host.hpp"
#include "kernels/base/result.hpp"
#include "scenarios/observe/run_observers.hpp"
#include "scenarios/observe/summary.hpp"
#include "scenarios/runner/node.hpp"
#include "scenarios/runner/world.hpp"
#include "scenarios/schema/scenario.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace shoal::scenarios {

/// What a live display shows.
struct live_status {
  run_progress progress;
  round_counts rounds;
  double wall_seconds = 0;
  std::uint64_t epochs_target = 0;
  duration stop_time{};
  const char* doing = "running"; ///< or 'ending', 'baseline'
  bool virtual_time = true;      ///< else the wall clock's
};

struct runner_options {
  std::string out; ///< run directory; empty: nothing is written
  bool force = false;
  unsigned threads = 0;          ///< compute threads; 0: as many as there are cores
  std::string build;             ///< which sources the program was made of, for run.yaml
  bool baseline = true;          ///< measure loss.baseline and loss.bigram
  std::optional<duration> until; ///< end at this virtual time at the latest
  std::function<void(const live_status&)> on_status; ///< called about five times a second
  std::function<bool()> interrupted;                 ///< asked as often; true ends the run cleanly
  /// Called once before the run begins, with the values that it will have.
  std::function<void(const std::shared_ptr<prometheus::Registry>&)> on_metrics;

  bool sizes_only =
      false; ///< compute nothing: sizes and durations are the scenario's, numbers there are none
  std::uint64_t end_at_epoch =
      0; ///< end the run there if training goes on longer; 0: it does not matter
  run_listener* listener = nullptr; ///< hears what the run directory gets; outlives the runner

  std::optional<node_options> node; ///< with world 'cluster': this process is one host of it

  // For tests.
  std::string conduct; ///< of all hosts, a name of actors::conducts(); empty: as the scenario says
  /// A host takes a branch of actors/failpoints.hpp. May be empty.
  std::function<void(std::string_view branch)> on_failpoint;
  bool share_states = true;
  std::function<void(const actors::host&, const actors::observation&)> on_observation;
};

struct run_outcome {
  scenarios::summary summary;
  bool interrupted = false;
  bool expectations_judged = true; ///< false if the run was ended early and there are any
  distortion late;                 ///< emulate only
  std::vector<std::string> missed; ///< expectations that did not hold, a sentence each
  std::string text_prompt, text_before, text_after; ///< samples of the model, if it writes text
};

/// The longest job of a peer that computes beside its rounds, or averages parameters: it ends the
/// one that it has begun before it follows the others, or applies an average. Zero for who waits
/// for its rounds.
duration job_before_following(const scenario& what);

class runner {
public:
  /// Reads data and builds the model. Errors: bad input (exit code 1).
  static result<std::unique_ptr<runner>> prepare(scenario what, runner_options options);
  ~runner();

  /// What to change before an emulation that this machine cannot keep up with, a sentence with the
  /// --set arguments that would fit; empty if it can, and in sim. Measures one real step.
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
