// A trainer knows a pipeline's stages from their records in the DHT: the peers with their epochs,
// and the ids of the states. No actor and no clock.
//
// A record is a claim. The epoch of a stage is one that at least half of its members have reached
// (stage_votes.hpp). No stage is far ahead of the others, so a record that claims it has no vote.
// Nor has the record of a peer that is gone, which lives on.
#pragma once

#include "actors/ids.hpp"
#include "actors/pipeline/pipeline_record.hpp"
#include "actors/pipeline/stage_votes.hpp"

#include <caf/actor.hpp>
#include <caf/actor_addr.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace shoal::actors {

class known_stages {
public:
  struct peer {
    caf::actor address;
    member_id member;
    std::uint32_t stage = 0;
    std::uint64_t epoch = 0;
    state_id state;
    id128 content;
    std::int64_t expires = 0;
  };

  explicit known_stages(std::uint32_t stages) : stages_(stages), claimed_(stages) {}

  struct change {
    bool is_new = false;               ///< nothing was known of the peer
    std::optional<std::uint32_t> left; ///< the stage in which the peer was before
  };
  /// `expires`: when the record ends. Requires: the record's stage is one of the pipeline's.
  change learn(peer_id whom, member_id member, const stage_record& record,
               const caf::actor& address, std::int64_t expires);
  /// Counts the votes of a stage. To be called after its new records were learnt.
  void count(std::uint32_t stage);
  /// The peer is gone. Its present record counts no more, but a later one does.
  void forget(peer_id whom);
  bool is_gone(peer_id whom, std::int64_t expires) const {
    const auto found = gone_.find(whom);
    return found != gone_.end() && expires <= found->second;
  }
  void clear() { peers_.clear(); }

  const std::map<peer_id, peer>& peers() const noexcept { return peers_; }
  /// nullptr if the peer is unknown.
  const peer* find(peer_id whom) const;
  /// The peer with this address; 0 if there is none.
  peer_id peer_at(const caf::actor_addr& address) const;
  /// The peers of the stage with its leading state, if that is of this epoch.
  std::vector<peer_id> donors(std::uint32_t stage, std::uint64_t epoch) const;

  /// The epoch of each stage; none for a stage without a peer.
  std::vector<std::optional<std::uint64_t>> epochs() const;
  /// Whether the stage has made the step of the batch of this epoch.
  bool stepped(std::uint32_t stage, std::uint64_t epoch) const;
  /// The id of the whole model's state; zero if the records have not shown all of it.
  /// The first answer about an epoch stays.
  state_id whole_at(std::uint64_t epoch);

private:
  /// The latest epoch that a record of the stage may have.
  std::uint64_t most_epoch(std::uint32_t stage) const;
  stage_votes votes_of(std::uint32_t stage) const;

  std::uint32_t stages_;
  std::vector<std::optional<std::uint64_t>> claimed_; // the epochs of the stages before that limit
  std::map<peer_id, peer> peers_;
  std::map<peer_id, std::int64_t> gone_; // and the ends of their records
  /// A state of a stage, and the members that have named it.
  struct named_state {
    state_id id;
    std::set<member_id> by;
  };
  std::map<std::uint64_t, std::vector<std::vector<named_state>>> ids_; // by epoch and stage
  std::map<std::uint64_t, state_id> whole_;                            // the answers of whole_at()
};

} // namespace shoal::actors
