// Starts and ends the hosts of groups with `churn:` as their sessions say. Each host has one event
// ahead in the queue, whatever the length of its trace.
//
// With faults: a session that begins while the host runs (a 'join' started it) goes on with what
// runs; one that ends while the host is down (a 'kill' struck it) changes nothing. So a killed host
// is back with its next session, and one that a fault starts in a gap stays until the end of its
// next session.
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

/// How one host comes and goes.
struct churned_host {
  netem::session_source sessions;
  duration offset{}; ///< its sessions count from here
  fault_scope ending = fault_scope::process;
};

/// For each of `hosts` (expand_hosts(from)) its churn, if it has any. Reads each trace once.
/// Errors: a trace that cannot be read or is not one.
result<std::vector<std::optional<churned_host>>> plan_churn(const scenario& from,
                                                            const std::vector<host_spec>& hosts);

class churn_engine {
public:
  using machine_index = std::uint32_t;
  /// What the engine does to the world.
  struct hooks {
    std::function<void(duration when, std::function<void()> action)> at;
    std::function<bool(machine_index)> running;
    std::function<void(machine_index)> start;             ///< of a machine that does not run
    std::function<void(machine_index, fault_scope)> kill; ///< of one that runs
  };

  explicit churn_engine(hooks world) : world_(std::move(world)) {}

  /// Plans the host's first session. The engine has to outlive the events that it plans.
  void add(machine_index machine, churned_host host);
  /// From now on nothing starts or ends.
  void stop() noexcept { stopped_ = true; }

  std::uint64_t started() const noexcept { return started_; }
  std::uint64_t ended() const noexcept { return ended_; }

private:
  struct state {
    machine_index machine;
    churned_host how;
    duration end{}; // of the session under way
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
