#include "actors/training/round_tracker.hpp"

#include <algorithm>
#include <vector>

namespace shoal::actors {

namespace {
constexpr int most_stretch = 4;
} // namespace

void round_tracker::prepare(round_request& request, averaging_config& how) const {
  // On lines with long delays, the configured time may be too short for any group.
  how.matchmaking_time *= std::clamp(missed_groups_, 1, most_stretch);
  request.rate_factors = rates_.factors();
  failing_.prepare(request);
  request.max_wait = missed_groups_ > 1 ? how.matchmaking_time
                                        : std::min(std::max(gathering_.value(), request.max_wait),
                                                   how.matchmaking_time);
}

void round_tracker::learn(const round_result& result, duration now) {
  std::vector<peer_id> reducers;
  for (const auto& m : result.members) reducers.push_back(m.peer);
  if (result.outcome == outcome::ok)
    rates_.measured(reducers, result.part_times, result.line_times);
  else if (result.reason == reason::reducer_timeout)
    rates_.timed_out(reducers, result.part_times, result.line_times, now - result.started);
  else
    rates_.unmeasured();
  // Here a reducer may be late because it waits for a silent sender or takes over a lost part.
  if (result.gathered > duration{}) gathering_.measured(result.gathered);
  // A longer search does not help against a leader that begins nothing.
  const bool missed = result.reason == reason::group_too_small ||
                      (result.reason == reason::matchmaking_timeout && result.bad_leader.is_zero());
  if (missed) gathering_.ran_out();
  failing_.learn(result);
  if (result.succeeded())
    missed_groups_ = std::max(missed_groups_ - 1, 0);
  else if (missed || result.reason == reason::no_reducer)
    missed_groups_ = std::min(missed_groups_ + 1, most_stretch);
}

} // namespace shoal::actors
