// The peers of a run: when each incarnation started and ended. Also peers.csv:
//   id,name,machine,incarnation,started_s,ended_s,reason
#pragma once

#include "actors/ids.hpp"
#include "kernels/base/units.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

namespace shoal::scenarios {

class peer_table {
public:
  struct entry {
    std::string name;
    std::uint32_t machine = 0, incarnation = 0;
    duration started{};
    bool alive = true;
    duration ended{};
    std::string reason{}; ///< why the peer is not alive
  };

  void started(actors::peer_id peer, entry what);
  /// Returns whether the peer was alive: a peer may leave before its host is killed.
  bool ended(duration time, actors::peer_id peer, std::string_view reason);

  bool contains(actors::peer_id peer) const { return peers_.contains(peer); }
  /// The name of the peer's host; 'peer 3f' for a peer that never started.
  std::string name_of(actors::peer_id peer) const;

  std::uint64_t joined() const noexcept { return joined_; }
  std::uint64_t left() const noexcept { return left_; }
  std::uint64_t alive() const noexcept { return joined_ - left_; }

  /// The text of peers.csv with its header; rows ascend by the peers' ids.
  std::string csv() const;

private:
  std::unordered_map<actors::peer_id, entry> peers_; // csv() sorts the entries
  std::uint64_t joined_ = 0, left_ = 0;
};

} // namespace shoal::scenarios
