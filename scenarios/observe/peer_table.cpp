#include "scenarios/observe/peer_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace shoal::scenarios {

void peer_table::started(actors::peer_id peer, entry what) {
  peers_.insert_or_assign(peer, std::move(what));
  ++joined_;
}

bool peer_table::ended(duration time, actors::peer_id peer, std::string_view reason) {
  const auto found = peers_.find(peer);
  if (found == peers_.end() || !found->second.alive) return false;
  found->second.alive = false;
  found->second.ended = time;
  found->second.reason = reason;
  ++left_;
  return true;
}

std::string peer_table::name_of(actors::peer_id peer) const {
  const auto found = peers_.find(peer);
  return found == peers_.end() ? fmt::format("peer {:x}", peer) : found->second.name;
}

std::string peer_table::csv() const {
  std::string out = "id,name,machine,incarnation,started_s,ended_s,reason\n";
  std::vector<actors::peer_id> ids;
  for (const auto& [id, peer] : peers_) ids.push_back(id);
  std::sort(ids.begin(), ids.end());
  for (const actors::peer_id id : ids) {
    const entry& peer = peers_.at(id);
    out +=
        fmt::format("{},{},{},{},{:.9f},{},{}\n", id, peer.name, peer.machine, peer.incarnation,
                    to_seconds(peer.started),
                    peer.alive ? "" : fmt::format("{:.9f}", to_seconds(peer.ended)), peer.reason);
  }
  return out;
}

} // namespace shoal::scenarios
