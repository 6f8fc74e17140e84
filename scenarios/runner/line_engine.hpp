// The line engine applies `over_time`: it changes lines, paths between regions and shared links at
// the times in the scenario.
#pragma once

#include "netem/line_trace.hpp"
#include "scenarios/runner/effects.hpp"
#include "scenarios/runner/network_setup.hpp"
#include "scenarios/runner/world.hpp"
#include "scenarios/schema/scenario.hpp"

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

namespace shoal::scenarios {

/// A line, path or shared link, and its changes.
struct line_plan {
  std::vector<netem::line_change> changes;
  duration repeat{};
  changed_line of{};
  std::size_t index = 0; ///< index of the group, link or shared link (sorted by name)
};

/// Plans all changes of a scenario. Errors: an unreadable trace.
result<std::vector<line_plan>> plan_lines(const scenario& what);

class line_engine {
public:
  /// `group_of_host` maps each host to its group. Requires: `in`, `on` and `what` outlive the
  /// engine.
  line_engine(world& in, effects& on, const scenario& what, const network_machines& network,
              std::vector<std::size_t> group_of_host, std::vector<line_plan> plans);

  void schedule();
  void stop() { stopped_ = true; }

private:
  void due(std::size_t plan, std::size_t step, duration from);
  void apply(const line_plan& plan, const netem::line_change& what);

  world& world_;
  effects& effects_;
  const scenario& scenario_;
  network_machines network_;
  std::vector<std::size_t> group_of_host_;
  std::vector<line_plan> plans_;
  std::vector<path_options> ways_;  // current quality of each link
  std::vector<shared_link> shared_; // current rates of each shared link
  std::atomic<bool> stopped_{false};
};

} // namespace shoal::scenarios
