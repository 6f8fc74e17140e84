#include "actors/training/reach_agent.hpp"

#include <caf/actor_cast.hpp>

namespace shoal::actors {

reached_by reach_agent::reached(bool has_relay) const {
  const auto verdict = known();
  if (verdict == reach::open) return reached_by::all;
  if (!has_relay) return reached_by::nobody;
  // Most connections with a cone need only a relay's signals. Otherwise the relay carries every
  // byte.
  return verdict == reach::cone ? reached_by::all : reached_by::relay;
}

reach_agent::queries reach_agent::look(const progress_table& others, const caf::actor& self,
                                       const std::vector<caf::actor>& shards, duration now,
                                       const host& on) {
  if (!due(now)) return {};
  std::vector<reachability::other> candidates;
  for (const auto& [id, entry] : others.entries())
    candidates.push_back({entry.address, entry.what.reach == reach::open,
                          on.member_of(caf::actor_cast<caf::strong_actor_ptr>(entry.address))});
  // The first records name few peers, and an inquiry of one peer fails.
  if (!candidates.empty() && first_look_ == duration{}) first_look_ = now + config_.timeout / 4;
  if (now < first_look_) return {};
  return rules_.look(std::move(candidates), self, shards);
}

std::vector<caf::actor> reach_agent::to_greet(const progress_table& others, bool has_relay) {
  // An unreachable peer may be the last owner of the leading state, so it connects to the others.
  if (!config_.enabled || reached(has_relay) != reached_by::nobody) return {};
  std::erase_if(greeted_, [&](peer_id id) { return !others.find(id); });
  std::vector<caf::actor> out;
  for (const auto& [id, entry] : others.entries())
    if ((entry.what.unreachable == 0 || entry.what.reach == reach::unknown) &&
        greeted_.insert(id).second)
      out.push_back(entry.address);
  return out;
}

} // namespace shoal::actors
