// Members that let a peer's rounds fail. Its next rounds avoid them. A plain state machine.
//
// One hostile member could stop a swarm in two ways, which leave no proof:
// - A leader names the earliest deadline in each attempt, lets all others join, and begins nothing.
//   A peer follows such a leader only after all others. These may still follow the leader, and then
//   miss this peer. So a group that is too small ends that.
// - A reducer gives each member other means, so that no version gets a majority. A peer that leads
//   gives such a member no part, and follows it only after all others.
#pragma once

#include "actors/averaging/avoided_members.hpp"
#include "actors/averaging/round.hpp"

namespace shoal::actors {

class failing_members {
public:
  void prepare(round_request& request) const {
    leaders_.add_to(request.bad_leaders, request.epoch);
    reducers_.add_to(request.bad_reducers, request.epoch);
    // As a leader, such a member would give itself a part.
    reducers_.add_to(request.bad_leaders, request.epoch);
  }
  void learn(const round_result& result) {
    if (result.reason == reason::group_too_small || result.reason == reason::no_reducer)
      leaders_.forgive();
    if (!result.bad_leader.is_zero()) leaders_.add(result.bad_leader, result.epoch);
    for (const auto& who : result.bad_reducers) reducers_.add(who, result.epoch);
  }
  /// True if the member let a round of this peer fail lately.
  bool suspects(const member_id& who, std::uint64_t epoch) const {
    return leaders_.suspects(who, epoch) || reducers_.suspects(who, epoch);
  }

private:
  avoided_members leaders_, reducers_;
};

} // namespace shoal::actors
