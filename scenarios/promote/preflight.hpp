// Predicts a promoted scenario by simulation, before its hosts cost anything.
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
  summary run;          ///< summary of the simulated part
  bool reached = false; ///< the simulation reached the last epoch before its stop_time or limit
  double seconds = 0;   ///< time to the last epoch; extrapolated when it was not reached
  double cost = 0;      ///< cost of all hosts for `seconds`
  struct host {
    std::string name;
    std::uint64_t memory_bytes = 0; ///< memory that the node needs
    std::uint64_t has_bytes = 0;    ///< memory of the host; 0: unknown
  };
  std::vector<host> hosts; ///< hosts that train
};

struct preflight_options {
  std::uint64_t epochs = 100; ///< largest number of simulated epochs; the rest is extrapolated
  std::string out;            ///< path of the simulation's run directory; empty: none is written
  std::string build;
  std::function<void(const live_status&)> on_status;
  std::function<bool()> interrupted;
};

/// Simulates `what` with sizes and durations instead of numbers, which is much faster than real
/// time. Errors: those of the runner; no round succeeded, with the reasons.
result<prediction> preflight(const scenario& what, const inventory& on, std::uint64_t values,
                             preflight_options options);

/// Returns a table for a terminal: round time, samples per second, bytes, memory by host, time and
/// cost.
std::string table(const prediction& what, const scenario& of);

} // namespace shoal::scenarios
