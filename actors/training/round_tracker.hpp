// Lessons of a peer's past rounds for its next one: the rates of the others' lines, and how long a
// group needs to gather. A plain state machine.
#pragma once

#include "actors/averaging/deadline.hpp"
#include "actors/averaging/rate_book.hpp"
#include "actors/averaging/round.hpp"

namespace shoal::actors {

class round_tracker {
public:
  explicit round_tracker(const averaging_config& config)
      : gathering_(4 * config.poll_interval, config.matchmaking_time) {}

  /// Sets what is known of lines and waiting times. The method's own `request.patience` is the
  /// least that a leader waits.
  void prepare(round_request& request, averaging_config& how) const;
  void learn(const round_result& result, duration now);

private:
  rate_book rates_;
  adaptive_deadline gathering_; // how long a group that this peer leads may take to gather
  int missed_groups_ = 0;       // lately; with each the peer looks for a group for longer
};

} // namespace shoal::actors
