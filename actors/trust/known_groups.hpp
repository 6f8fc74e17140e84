// The members of the groups that a host knows, from its own rounds and from the chain of its
// branch. A verdict about another group proves nothing yet: the host's DHT node keeps it until the
// host knows that group. A plain table.
#pragma once

#include "actors/averaging/messages.hpp"
#include "actors/ids.hpp"
#include "actors/trust/proof.hpp"
#include "actors/trust/verdict.hpp"

#include <cstddef>
#include <deque>
#include <map>
#include <utility>
#include <variant>
#include <vector>

namespace shoal::actors {

/// The keys of a group's members, in the order of its roster.
inline std::vector<key256> keys_of(const group_begun& roster) {
  std::vector<key256> out;
  for (const auto& member : roster.members) out.push_back(member.key);
  return out;
}

class known_groups {
public:
  static constexpr std::size_t most_groups = 1024;

  /// Remembers the keys of a group's members, in the order of its roster.
  void remember(const group_id& group, std::vector<key256> members) {
    if (!members_.emplace(group, std::move(members)).second) return;
    order_.push_back(group);
    if (order_.size() > most_groups) {
      members_.erase(order_.front());
      order_.pop_front();
    }
  }
  /// Says whether the proof bans its culprit.
  ban_result examine(const proof& what, const signature_check& is_signed_by) const {
    if (!holds(what, is_signed_by)) return ban_result::wrong;
    const auto* judged = std::get_if<verdict>(&what);
    if (judged == nullptr) return ban_result::banned;
    const auto found = members_.find(judged->group);
    if (found == members_.end()) return ban_result::later;
    return check(*judged, found->second, is_signed_by) ? ban_result::banned : ban_result::wrong;
  }

private:
  std::map<group_id, std::vector<key256>> members_;
  std::deque<group_id> order_; // oldest first
};

} // namespace shoal::actors
