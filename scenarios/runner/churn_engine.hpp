// The churn engine starts and kills the hosts of groups with `churn:` at the bounds of their
// sessions. Each host has one event in the queue, even with a long trace.
//
// Faults may start and kill the same hosts. If a session begins while the host runs, because a
// 'join' started the host, the host keeps running. If a session ends while the host is down,
// because of a 'kill', nothing happens. So a killed host returns with its next session. A host that
// a fault starts in a gap stays until the end of its next session.
#pragma once

#include "kernels/base/result.hpp"
#include "netem/churn.hpp"
#include "scenarios/schema/hosts.hpp"
#include "scenarios/schema/scenario.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace shoal::scenarios {

/// The churn of one host.
struct churned_host {
  netem::session_source sessions;
  duration offset{}; ///< time zero of `sessions`
  fault_scope ending = fault_scope::process;
};

/// Returns the churn of each host, or nothing for a host without churn. Reads each trace once.
/// `branches`: see run_seed. Requires: `hosts` equals expand_hosts(from). Errors: an unreadable or
/// invalid trace.
result<std::vector<std::optional<churned_host>>> plan_churn(const scenario& from,
                                                            const std::vector<host_spec>& hosts,
                                                            const branch_point* branches = nullptr);

class churn_engine {
public:
  using machine_index = std::uint32_t;
  /// Operations of the world that the engine calls.
  struct hooks {
    std::function<void(duration when, std::function<void()> action)> at;
    std::function<bool(machine_index)> running;
    std::function<void(machine_index)> start;             ///< boots a machine that is down
    std::function<void(machine_index, fault_scope)> kill; ///< kills a running machine
  };

  explicit churn_engine(hooks world) : world_(std::move(world)) {}

  /// Plans the host's first session. Requires: the engine outlives the events that it plans.
  void add(machine_index machine, churned_host host);
  /// Ignores all later events: no host starts or ends any more.
  void stop() noexcept { stopped_ = true; }

  std::uint64_t started() const noexcept { return started_; }
  std::uint64_t ended() const noexcept { return ended_; }

private:
  struct state {
    machine_index machine;
    churned_host how;
    duration end{}; // end of the current session
  };

  void plan_start(std::size_t index);
  void begin(std::size_t index);
  void finish(std::size_t index);

  hooks world_;
  std::vector<state> hosts_;
  bool stopped_ = false;
  std::uint64_t started_ = 0, ended_ = 0;
};

} // namespace shoal::scenarios
