// Follows every sample index through a run: leased by the shard, computed by a peer, contributed to
// a round, committed. Checks that none is counted twice or lost without being reported
// (docs/design.md, sections 4 and 5: invariant `samples_counted`).
//
// At once:
//  - computed: a peer computes no index that it has computed and not yet used or dropped.
//  - contributed: the weight is the number of indices; each was computed by that peer exactly once;
//    everything it had computed is in it (a sample less is a lost sample).
//  - moved: leased only when free, returned only from a lease of that peer, committed from one or
//  when
//    free (a round's commit may come after the lease ended).
//  - final rounds: no index is in two completed rounds.
// At the end:
//  - no index between the lowest and the highest known one is unknown to the shard;
//  - each leased index is held by a living peer, or by one that died less than `lease_time` ago
//  (and a
//    quarter: the shard does not look all the time);
//  - each index of a completed round is committed or partial, unless the round completed less than
//    `settle_time` ago (its commit may be under way); each committed index is in a completed round.
// A round that splits the swarm makes two branches, and one of them wins (docs/design.md, section
// 4): what the other one used may be used again. So does one whose members all die before anybody
// else hears of it. So a second use counts only if both rounds led to the state that the run ends
// with, and only what such a round used has to be committed. Indices that are reported
// (actors::samples_reported, at any time) are excused from double use. Where replicas of the shard
// take over from each other, the next primary may say again what the last one had said and not told
// it: that an index is returned, or final; and it may take back what nobody claims (peer 0). Of two
// primaries that do not know of each other yet, one may take back or lease what the other one has
// committed: then it has to be final again at the end, and used once. Indices that no replica
// issued end where an index block begins. In local view the host of a peer does not hear what the
// shard takes back, nor the shard's what peers use: of a peer it is checked that it contributes
// what it computed, each index once, with their number as its weight; of a shard, that each move
// follows the one before. A replica that takes over knows its samples from others, so that their
// first move is not judged. A peer's computed indices are forgotten when it drops its gradient: it
// downloads, adopts, leaves, dies, or reports them; indices that it gives back may be in its next
// contribution or not. A peer that repeats a step beside computing drops what it had for that
// step's round, and keeps what it has computed since it went over to the state before.
//
// Actors must observe `trained` when a gradient is added to what will be contributed, not for
// results that are thrown away.
//
// Memory: intervals; indices that are through (committed and used once) merge.
#pragma once

#include "actors/ids.hpp"
#include "kernels/base/interval_map.hpp"
#include "kernels/base/units.hpp"
#include "scenarios/observe/invariant.hpp"
#include "scenarios/observe/rounds.hpp"

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace shoal::actors {
struct contributed;
struct round_ended;
struct samples_moved;
struct samples_reported;
struct step_made;
struct stepped;
struct trained;
} // namespace shoal::actors

namespace shoal::scenarios {

struct sample_book_options {
  duration lease_time = std::chrono::seconds(60);
  duration settle_time = std::chrono::seconds(30);
  bool weights_are_samples = true; ///< false where all contributions weigh the same
  /// What is computed while a round is under way is in the next one (in which it has to be).
  bool computes_meanwhile = false;
  std::function<std::string(actors::peer_id)> name_of; ///< for texts
  bool takeovers = false;  ///< replicas of the shard take over from each other
  bool one_branch = false; ///< each step leads from the state of all to the next one
  observed_view view = observed_view::whole;
};

class sample_book {
public:
  /// `into` must outlive this.
  sample_book(sample_book_options options, invariant& into);

  void computed(duration time, actors::peer_id peer, const actors::trained& what);
  void contributed(duration time, actors::peer_id peer, const actors::contributed& what);
  void round_ended(duration time, actors::peer_id peer, const actors::round_ended& what);
  void round_final(const swarm_round& what);
  void moved(duration time, const actors::samples_moved& what);
  void reported(const actors::samples_reported& what);
  void stepped(actors::peer_id peer, const actors::stepped& what);
  void step_made(const actors::step_made& what);
  /// The peer has gone over to the next state by a step that it did not average.
  void repeated_step(actors::peer_id peer);
  /// The peer has thrown its gradient away.
  void dropped(actors::peer_id peer) { peers_.erase(peer); }

  /// `died(peer)`: when a peer that is not alive was killed or left; nothing if it lives.
  /// `leading`: the state that the run ends with, if known.
  void finish(duration time, const std::function<std::optional<duration>(actors::peer_id)>& died,
              const std::optional<actors::state_id>& leading = {});

  /// How many stretches of indices are held: what memory grows with.
  std::size_t pieces() const noexcept { return samples_.piece_count(); }

private:
  enum class shard_state : std::uint8_t { unknown, leased, committed, returned, partial };
  struct entry {
    shard_state shard = shard_state::unknown;
    std::uint8_t uses = 0; // completed rounds it is in
    bool reported = false;
    bool lost_branch = false;   // in a round that only members completed who then died
    std::uint32_t round = 0;    // number of the round that used it, until it is through
    actors::peer_id holder = 0; // of the lease
    std::int64_t used_ns = 0;
    bool operator==(const entry&) const = default;
    bool is_final() const noexcept {
      return shard == shard_state::committed || shard == shard_state::partial;
    }
  };
  struct peer_state {
    interval_map<bool> computed;   // not yet used
    interval_map<bool> given_back; // computed, then returned to the shard
    interval_map<bool> left_out; // computed while a round was under way: has to be in the next one
    std::uint64_t left_out_epoch = 0; // of that round, or of its attempts
    interval_map<bool>
        for_round; // of the computed ones: for the round on its state, if it computes meanwhile
    actors::group_id group; // of the last contribution
    std::vector<actors::sample_range> contribution;
  };
  /// A violation unless its indices are reported before the end.
  struct suspicion {
    std::uint64_t begin, end;
    duration time;
    std::string text;
    actors::group_id first, second; // rounds, as far as they are numbered
    bool heals = false;             // none if they are final at the end, used once
  };
  struct step {
    actors::state_id before;
    actors::group_id group;
  };

  void went_over(peer_state& of);
  void suspect(duration time, std::uint64_t begin, std::uint64_t end, std::string text,
               const actors::group_id& first = {}, const actors::group_id& second = {},
               bool heals = false);
  /// At the end: the round did not lead to the leading state.
  bool lost(const actors::group_id& round) const { return lost_.contains(round); }
  void find_lost(const std::optional<actors::state_id>& leading);
  void settle(entry& what) const noexcept;
  void finish_stretch(duration time, std::uint64_t begin, std::uint64_t end, const entry& what,
                      const std::function<std::optional<duration>(actors::peer_id)>& died);

  sample_book_options options_;
  invariant& check_;
  interval_map<entry> samples_;
  std::unordered_map<actors::peer_id, peer_state> peers_; // never iterated
  std::vector<suspicion> suspicions_;
  std::uint64_t suspicions_dropped_ = 0;
  bool shard_seen_ = false;
  bool split_ =
      false; // a round has split the swarm: from then on samples are told apart by their rounds
  std::vector<actors::group_id> rounds_; // by number - 1
  std::size_t before_split_ = 0;         // how many of them
  std::map<actors::state_id, step>
      steps_; // by the state they made: the last few, all from the first split on
  std::multimap<actors::group_id, actors::state_id>
      befores_; // without one_branch: what the members of a group went from
  std::optional<actors::state_id> origin_; // what the first step led from
  std::deque<actors::state_id> first_steps_;
  actors::state_id last_step_;
  std::set<actors::group_id> lost_;
};

} // namespace shoal::scenarios
