// Which training method should be the fastest for the model and the hosts of a scenario, and
// whether it is. Predictions come from the methods (scenarios/methods/speed.hpp), and measurements
// from the simulator.
#pragma once

#include "kernels/base/result.hpp"
#include "scenarios/methods/speed.hpp"
#include "scenarios/plan/host_memory.hpp"
#include "scenarios/runner/runner.hpp"
#include "scenarios/schema/scenario.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace shoal::scenarios {

struct plan_row {
  std::string method, variant;
  std::vector<std::string> sets;     ///< the --set arguments that make it
  std::optional<scenario> what;      ///< empty: the checks refuse it
  speed_prediction predicted;        ///< a speed of 0: impossible
  std::string impossible;            ///< the reason; empty if it is possible
  std::optional<memory_need> memory; ///< for the group whose memory it fills most
  std::optional<double> measured;    ///< samples per second in the simulator
  std::string not_measured;          ///< why the simulation gave no speed
};

struct method_plan {
  std::uint64_t samples = 0;      ///< for the times in the table
  std::vector<plan_row> rows;     ///< the fastest first, then those that are impossible
  std::vector<std::string> notes; ///< the parts of this scenario that the predictions leave out
};

/// The scenario `what` was loaded from `file` with `sets`. Errors: a program other than training;
/// no host that trains.
result<method_plan> plan_methods(const scenario& what, const std::string& file,
                                 const std::vector<std::string>& sets, std::uint64_t samples);

struct plan_run_options {
  std::uint64_t epochs = 6;                    ///< after the first one
  std::function<void(const plan_row&)> on_row; ///< called before a row is run
  std::function<bool()> interrupted;
};

/// Runs the possible rows in the simulator, with sizes and durations in place of numbers. The speed
/// is that after the first step. Errors: the user interrupted it.
result<void> run_plan(method_plan& plan, const plan_run_options& options);

/// A table for a terminal; and the same as a JSON object.
std::string table(const method_plan& plan);
std::string to_json(const method_plan& plan);

} // namespace shoal::scenarios
