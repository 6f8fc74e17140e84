// Members that a peer avoids for a number of epochs, and for twice as many each further time.
// Nothing is proven against them, so each one gets another try. A plain state machine.
#pragma once

#include "actors/ids.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>

namespace shoal::actors {

class avoided_members {
public:
  static constexpr std::uint64_t first_epochs = 10;

  /// The member failed this peer in a round of that epoch.
  void add(const member_id& who, std::uint64_t epoch) {
    auto& one = members_[who];
    one.until = one.suspect_until = epoch + 1 + (first_epochs << one.times);
    one.times = std::min(one.times + 1, most_doublings);
  }
  /// Each member gets another try now. The next time counts as a further one, and they stay
  /// suspects.
  void forgive() {
    for (auto& [who, one] : members_) one.until = 0;
  }
  /// True if the member is avoided in that epoch, or would be if nothing were forgiven.
  bool suspects(const member_id& who, std::uint64_t epoch) const {
    const auto found = members_.find(who);
    return found != members_.end() && epoch < found->second.suspect_until;
  }
  /// Adds the members that are avoided in that epoch.
  void add_to(std::set<member_id>& out, std::uint64_t epoch) const {
    for (const auto& [who, one] : members_)
      if (epoch < one.until) out.insert(who);
  }

private:
  static constexpr unsigned most_doublings = 10;

  struct avoided {
    std::uint64_t until = 0, suspect_until = 0; ///< the first epoch without it
    unsigned times = 0;
  };
  std::map<member_id, avoided> members_;
};

} // namespace shoal::actors
