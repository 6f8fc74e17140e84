// Remembers a peer's past rounds for the next one. It knows the effective rates of other peers'
// lines, the time in which a group gathers, and the leaders that began no group. A plain state
// machine.
//
// Without the leaders, a hostile one could stop a swarm: it names the earliest deadline in each
// attempt, lets all others join, and begins nothing. A peer therefore follows such a leader only
// after all others for the next `avoided_epochs`, and for twice as many each further time. Others
// may still follow the leader, and then miss this peer. So a group that is too small ends that.
#pragma once

#include "actors/averaging/deadline.hpp"
#include "actors/averaging/rate_tracker.hpp"
#include "actors/averaging/round.hpp"

#include <cstdint>
#include <map>

namespace shoal::actors {

class round_tracker {
public:
  explicit round_tracker(const averaging_config& config)
      : gathering_(4 * config.poll_interval, config.matchmaking_time) {}

  /// Sets rate factors and waiting times. The method's own `request.max_wait` is a lower bound for
  /// the wait of a leader.
  void prepare(round_request& request, averaging_config& how) const;
  void learn(const round_result& result, duration now);
  static constexpr std::uint64_t avoided_epochs = 10;
  /// True if several groups lacked members lately.
  bool lacks_members() const noexcept { return missed_groups_ > 1; }

private:
  rate_tracker rates_;
  adaptive_deadline gathering_; // the gathering of groups that this peer leads
  // Groups missed lately. With each one, the peer looks longer for a group.
  int missed_groups_ = 0;
  struct leader_lapses {
    std::uint64_t avoided_until = 0; ///< the first epoch of a round that may follow the leader
    unsigned count = 0;              ///< groups that the leader did not begin
  };
  std::map<member_id, leader_lapses> bad_leaders_;
};

} // namespace shoal::actors
