// What will happen before it costs anything: a promoted scenario, simulated.
#pragma once

#include "kernels/base/result.hpp"
#include "scenarios/observe/summary.hpp"
#include "scenarios/runner/runner.hpp"
#include "scenarios/schema/inventory.hpp"

#include <functional>
#include <string>
#include <vector>

namespace shoal::scenarios {

struct prediction {
  summary run;          ///< of as much of it as was simulated
  bool reached = false; ///< all epochs were; false: stop_time or the limit came first
  double seconds = 0;   ///< to the last epoch; extrapolated if it was not reached
  double cost = 0;      ///< of all hosts for that time
  struct host {
    std::string name;
    std::uint64_t memory_bytes = 0; ///< of a node
    std::uint64_t has_bytes = 0;    ///< 0: not known
  };
  std::vector<host> hosts; ///< those that train
};

struct preflight_options {
  std::uint64_t epochs = 100; ///< simulated at most; the rest is extrapolated
  std::string out;            ///< where its run directory is written; empty: nowhere
  std::string build;
  std::function<void(const live_status&)> on_status;
  std::function<bool()> interrupted;
};

/// Simulates `what` with sizes and durations instead of numbers, so that a minute of the swarm
/// takes far less than that. Errors: those of the runner; not one round succeeded, with the
/// reasons.
result<prediction> preflight(const scenario& what, const inventory& on, std::uint64_t values,
                             preflight_options options);

/// For people: round time, samples per second, bytes, memory by host, time and cost.
std::string table(const prediction& what, const scenario& of);

} // namespace shoal::scenarios
