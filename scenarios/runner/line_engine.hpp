// Plays `over_time`: changes lines, ways between regions and shared links when the scenario says
// so.
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

/// What changes, and how.
struct line_plan {
  std::vector<netem::line_change> changes;
  duration repeat{};
  changed_line of{};
  std::size_t index =
      0; ///< of the group, the link or the shared link (in the order of their names)
};

/// Errors: a trace cannot be read (any more).
result<std::vector<line_plan>> plan_lines(const scenario& what);

class line_engine {
public:
  /// `groups`: by host, which group it is in. All must outlive this.
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
  std::vector<path_options> ways_;  // of the links, as they are now
  std::vector<shared_link> shared_; // as they are now
  std::atomic<bool> stopped_{false};
};

} // namespace shoal::scenarios
