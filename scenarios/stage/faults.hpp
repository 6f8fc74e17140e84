// Carries out the scenario's `faults:`: at a time, or when a selected host reaches a probe for the
// n-th time.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "netem/fabric.hpp"
#include "scenarios/schema/scenario.hpp"
#include "scenarios/stage/world.hpp"

namespace shoal::scenarios {

class fault_engine {
 public:
  /// `start` boots the peer of a machine; `machines` are those of the peers, in order of their names.
  fault_engine(world& in, std::vector<fault> faults, std::vector<netem::machine_index> machines,
               std::vector<std::string> names, std::function<void(netem::machine_index)> start);

  void schedule();
  void reached(netem::host_index host, std::string_view point);

  /// Faults that struck so far.
  std::uint64_t struck() const noexcept { return struck_; }

 private:
  void strike(const fault& what, netem::machine_index machine);

  world& world_;
  std::vector<fault> faults_;
  std::mutex mutex_;                         // guards counts_: probes are reached in several threads
  std::vector<std::uint64_t> counts_;        // how often a selected host reached `on`, by fault
  std::vector<netem::machine_index> machines_;
  std::vector<std::string> names_;
  std::function<void(netem::machine_index)> start_;
  std::atomic<std::uint64_t> struck_{0};
};

}  // namespace shoal::scenarios
