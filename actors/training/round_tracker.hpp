// Remembers a peer's past rounds for the next one. It knows the effective rates of other peers'
// lines, the time in which a group gathers, and the members to avoid. A plain state machine.
#pragma once

#include "actors/averaging/deadline.hpp"
#include "actors/averaging/failing_members.hpp"
#include "actors/averaging/rate_tracker.hpp"
#include "actors/averaging/round.hpp"

namespace shoal::actors {

class round_tracker {
public:
  explicit round_tracker(const averaging_config& config)
      : gathering_(4 * config.poll_interval, config.matchmaking_time) {}

  /// Sets rate factors and waiting times. The method's own `request.max_wait` is a lower bound for
  /// the wait of a leader.
  void prepare(round_request& request, averaging_config& how) const;
  void learn(const round_result& result, duration now);
  /// True if several groups lacked members lately.
  bool lacks_members() const noexcept { return missed_groups_ > 1; }

private:
  rate_tracker rates_;
  adaptive_deadline gathering_; // the gathering of groups that this peer leads
  // Groups missed lately. With each one, the peer looks longer for a group.
  int missed_groups_ = 0;
  failing_members failing_;
};

} // namespace shoal::actors
