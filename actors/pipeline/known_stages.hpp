// A trainer knows a pipeline's stages from their records in the DHT: the peers with their epochs,
// and the ids of the states. No actor and no clock.
#pragma once

#include "actors/ids.hpp"
#include "actors/pipeline/pipeline_record.hpp"

#include <caf/actor.hpp>
#include <caf/actor_addr.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace shoal::actors {

class known_stages {
public:
  struct peer {
    caf::actor address;
    std::uint32_t stage = 0;
    std::uint64_t epoch = 0;
    state_id state;
  };

  explicit known_stages(std::uint32_t stages) : stages_(stages) {}

  struct change {
    bool is_new = false;               ///< nothing was known of the peer
    std::optional<std::uint32_t> left; ///< the stage in which the peer was before
  };
  /// Requires: the record's stage is one of the pipeline's.
  change learn(peer_id whom, const stage_record& record, const caf::actor& address);
  void forget(peer_id whom) { peers_.erase(whom); }
  void clear() { peers_.clear(); }

  const std::map<peer_id, peer>& peers() const noexcept { return peers_; }
  /// nullptr if the peer is unknown.
  const peer* find(peer_id whom) const;
  /// The peer with this address; 0 if there is none.
  peer_id peer_at(const caf::actor_addr& address) const;
  /// A peer of the stage that is at this epoch; nullptr if there is none.
  const peer* donor(std::uint32_t stage, std::uint64_t epoch) const;

  /// The highest epoch of each stage; none for a stage without a peer.
  std::vector<std::optional<std::uint64_t>> highest_epochs() const;
  /// Whether a peer of the stage has made the step of the batch of this epoch.
  bool stepped(std::uint32_t stage, std::uint64_t epoch) const;
  /// The id of the whole model's state; zero if the records have not shown all of it.
  state_id whole_at(std::uint64_t epoch) const;

private:
  std::uint32_t stages_;
  std::map<peer_id, peer> peers_;
  std::map<std::uint64_t, std::vector<state_id>> ids_; // the stages' states, by epoch
};

} // namespace shoal::actors
