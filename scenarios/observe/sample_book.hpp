// Follows every sample index through a run: the shard leases an index, a peer computes it, a round
// uses it, the shard commits it. The invariant `samples_counted` holds if each index counts once
// and none is lost without a report (docs/design.md, sections 4 and 5).
//
// Checked as events arrive:
//  - computed: a peer computes no index that it has computed and neither used nor dropped.
//  - contributed: the weight is the number of indices. The peer computed each of these indices
//    exactly once. The contribution holds every index that the peer had computed: a missing one is
//    a lost sample.
//  - moved: the shard leases a free index only. It takes an index back only from the peer that
//    leases it. It commits an index that is leased or free: a commit may follow the lease's end.
//  - final rounds: no index is in two completed rounds.
//
// Checked at the end of the run:
//  - The shard knows each index between the lowest and the highest one seen.
//  - A leased index belongs to a living peer, or to a peer that died less than `lease_time` * 5/4
//    ago. The extra quarter covers the shard's interval between two looks at its leases.
//  - An index of a completed round is committed or partial. A round that completed less than
//    `settle_time` ago is exempt: its commit may be under way.
//  - A committed index is in a completed round.
//
// Exceptions:
//  - Branches. A split round makes two branches of the training state, and one branch wins
//    (docs/design.md, section 4). The winning branch may use an index again that the losing branch
//    used. The same holds for a round whose members all die before another peer hears of it. So a
//    second use counts only if both rounds led to the state that the run ends with. Only the
//    indices of such a round have to be committed.
//  - Reports. Indices in an actors::samples_reported, at any time, are excused from double use.
//  - Takeovers. A new primary of the shard may repeat a move that the last primary made and did not
//    replicate: a return, or a final state. It may take back indices that no peer claims (peer 0).
//    Two primaries may be active without knowing of each other. One primary may then take back or
//    lease an index that the other one has committed. Such an index has to be final at the end, and
//    used once. Indices that no replica issued end where an index block begins.
//  - Claims of attackers. With replicas a shard believes a peer, within the peer's budget, that
//    another primary leased it an index. An attacker may claim an index that nobody ever issued.
//    Its first move is then no violation, and the gap below it has no sample that could be lost.
//  - False commits. Without proofs of rounds a shard believes a commit of an attacker, and of a
//    joiner that an attacker gave one to. Such a commit may name samples that no round used.
//  - Local view. The host of a peer does not observe what the shard takes back. The host of the
//    shard does not observe what peers use. The book then checks of a peer that it contributes only
//    computed indices, each once, with their number as the weight. It checks of a shard that each
//    move fits the move before. It accepts the first move of each index after a takeover: a new
//    primary learned the earlier moves from other replicas.
//  - Dropped gradients. The book forgets a peer's computed indices when the peer drops its
//    gradient: on a download, an adoption, leaving, death, or a report. Indices that a peer gives
//    back may be in its next contribution or not.
//  - Repeated steps. A peer that computes during a round may have to repeat a step. It drops the
//    indices of that step's round and keeps those computed since it went over to the state before.
//
// Requires: an actor observes `trained` when it adds a gradient to its next contribution, and not
// for a result that it throws away.
//
// Memory: intervals of indices. Intervals of committed indices that were used once merge.
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
struct batch_stepped;
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
  /// A peer computes while a round is under way. The next round has to contain these samples.
  bool computes_meanwhile = false;
  std::function<std::string(actors::peer_id)> name_of; ///< a peer's name, for messages
  std::function<bool(actors::peer_id)> is_honest;      ///< empty: all peers are
  bool takeovers = false;  ///< replicas of the shard take over from each other
  bool one_branch = false; ///< each step leads from one state, which all peers share, to the next
  /// The shard has no proof of rounds, and the swarm has an attacker (docs/security.md).
  bool commits_may_lie = false;
  observed_view view = observed_view::whole;
};

class sample_book {
public:
  /// Requires: `into` outlives the book.
  sample_book(sample_book_options options, invariant& into);

  void computed(duration time, actors::peer_id peer, const actors::trained& what);
  void contributed(duration time, actors::peer_id peer, const actors::contributed& what);
  void round_ended(duration time, actors::peer_id peer, const actors::round_ended& what);
  void round_final(const swarm_round& what);
  void moved(duration time, const actors::samples_moved& what);
  void reported(const actors::samples_reported& what);
  void stepped(actors::peer_id peer, const actors::stepped& what);
  /// The samples are in a step of the model that no round of this peer's own made.
  void batch_stepped(duration time, actors::peer_id peer, const actors::batch_stepped& what);
  void step_made(const actors::step_made& what);
  /// The peer has gone over to the next state by a step that it did not average itself.
  void repeated_step(actors::peer_id peer);
  /// The peer has thrown its gradient away.
  void dropped(actors::peer_id peer) { peers_.erase(peer); }

  /// Checks what can only be judged at the end of the run.
  /// `died(peer)`: the time when the peer was killed or left; empty if it lives.
  /// `leading`: the state that the run ends with, if known.
  void finish(duration time, const std::function<std::optional<duration>(actors::peer_id)>& died,
              const std::optional<actors::state_id>& leading = {});

  /// The number of index intervals in memory; the book's memory grows with it.
  std::size_t pieces() const noexcept { return samples_.piece_count(); }

private:
  enum class shard_state : std::uint8_t { unknown, leased, committed, returned, partial };
  struct entry {
    shard_state shard = shard_state::unknown;
    std::uint8_t uses = 0; // number of completed rounds that used the index
    bool reported = false;
    // Used by a round that only attackers completed, or members who then died.
    bool lost_branch = false;
    bool claimed = false;       // first moved for an attacker; perhaps no shard issued it
    std::uint32_t round = 0;    // number of the round that used the index; 0 once it is settled
    actors::peer_id holder = 0; // the peer that leases the index
    std::int64_t used_ns = 0;
    bool operator==(const entry&) const = default;
    bool is_final() const noexcept {
      return shard == shard_state::committed || shard == shard_state::partial;
    }
  };
  struct peer_state {
    interval_map<bool> computed;   // computed and not yet used
    interval_map<bool> given_back; // computed, then returned to the shard
    // Computed while a round was under way; the next round has to contain these samples.
    interval_map<bool> left_out;
    std::uint64_t left_out_epoch = 0; // the epoch of that round and of its retries
    // With computes_meanwhile: the computed samples that belong to the round on the peer's state.
    interval_map<bool> for_round;
    actors::group_id group;                         // group of the last contribution
    std::vector<actors::sample_range> contribution; // samples of the last contribution
  };
  /// A violation, unless its indices are reported before the run ends.
  struct suspicion {
    std::uint64_t begin, end;
    duration time;
    std::string text;
    actors::group_id first, second; // the rounds that are involved; zero if not known
    bool heals = false;             // excused if the indices end final and were used once
  };
  struct step {
    actors::state_id before;
    actors::group_id group;
  };

  /// Counts a use of the samples by the last round in rounds_.
  void use(duration time, actors::peer_id peer, const actors::group_id& group, std::uint64_t epoch,
           const std::vector<actors::sample_range>& samples);
  void went_over(peer_state& of);
  void suspect(duration time, std::uint64_t begin, std::uint64_t end, std::string text,
               const actors::group_id& first = {}, const actors::group_id& second = {},
               bool heals = false);
  /// Whether a round did not lead to the leading state. Valid after find_lost().
  bool lost(const actors::group_id& round) const { return lost_.contains(round); }
  void find_lost(const std::optional<actors::state_id>& leading);
  void settle(entry& what) const noexcept;
  bool is_attacker(actors::peer_id peer) const {
    return options_.is_honest && !options_.is_honest(peer);
  }
  /// Finds the gaps above which, in their index block, attackers alone have indices.
  void find_claimed_gaps();
  void finish_stretch(duration time, std::uint64_t begin, std::uint64_t end, const entry& what,
                      const std::function<std::optional<duration>(actors::peer_id)>& died);

  sample_book_options options_;
  invariant& check_;
  interval_map<entry> samples_;
  std::unordered_map<actors::peer_id, peer_state> peers_; // never iterated
  std::vector<suspicion> suspicions_;
  std::uint64_t suspicions_dropped_ = 0;
  bool shard_seen_ = false;
  // A round has split the swarm. From then on entries keep the number of their round.
  bool split_ = false;
  std::vector<actors::group_id> rounds_; // completed rounds; index: number - 1
  std::size_t before_split_ = 0;         // number of completed rounds before the first split
  // Steps by the state that they made: the last few, and every step since the first split.
  std::map<actors::state_id, step> steps_;
  // Without one_branch: the states from which the members of a group made their step.
  std::multimap<actors::group_id, actors::state_id> befores_;
  std::optional<actors::state_id> origin_; // the state before the first known step
  std::deque<actors::state_id> first_steps_;
  actors::state_id last_step_;
  std::set<actors::group_id> lost_;
  std::set<std::uint64_t> claimed_gap_ends_;
};

} // namespace shoal::scenarios
