// Matchmaking: peers that are gone, and members that have begun anew.
#include "actors/averaging/matchmaking.hpp"

#include <caf/actor_addr.hpp>
#include <caf/actor_cast.hpp>

#include <algorithm>

namespace shoal::actors {

void matchmaking::on_down(const caf::actor_addr& whom) {
  if (over_) return;
  forget(whom, true);
  choose_leader();
  close_if_complete();
}

void matchmaking::forget(const caf::actor_addr& whom, bool died) {
  auto gone = [&](const caf::actor& address) {
    return caf::actor_cast<caf::actor_addr>(address) == whom;
  };
  gone_.push_back(whom);
  std::erase_if(expected_, [&](const auto& entry) { return gone(entry.second); });
  for (auto i = ready_.begin(); i != ready_.end();) {
    if (!gone(i->second.address)) {
      ++i;
      continue;
    }
    joined_.erase(i->first);
    if (leader_ == i->first) {
      leader_.reset();
      accepted_ = false;
      lost_leader_ = lost_leader_ || died;
    }
    i = ready_.erase(i);
  }
}

void matchmaking::forget_former(const member_info& who) {
  const auto former = std::find_if(joined_.begin(), joined_.end(), [&](const auto& one) {
    return one.second.key == who.key && one.first != who.peer;
  });
  if (former != joined_.end()) forget(former->second.address.address(), false);
}

} // namespace shoal::actors
