// The progress records of peers, and what a peer concludes from them. There is no central count:
// each peer adds up the records itself (DeDLOC without a centre). A plain value type and a plain
// table.
//
// A record is a claim. It says when to look, and proves nothing: a branch leads only if its chain
// leads (actors/training/chain_follower.hpp). One member has one record here. Its numbers are cut
// to what one member may have, and a member that does not come to rounds counts nothing.
//
// Source: Diskin et al., arXiv:2106.10207, section 3. The branch rule is in docs/architecture.md.
#pragma once

#include "actors/averaging/round.hpp"
#include "actors/dht/messages.hpp"
#include "actors/reachability/reach.hpp"
#include "kernels/base/units.hpp"

#include <caf/actor.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace shoal::actors {

inline constexpr const char* progress_key = "progress";

/// A peer's role in the round that leads on from its state. `passes`: no peer contributed to the
/// round, and the peer goes on without a step.
enum class round_part : std::uint8_t { takes_part, has_result, came_late, passes };

struct progress {
  std::uint64_t epoch = 0;
  state_id state;
  std::uint64_t history = 0; ///< samples in all steps that led to `state`
  std::uint64_t samples = 0; ///< accumulated towards the next step
  std::uint64_t millisamples_per_second = 0;
  std::uint64_t rate_up = 0;     ///< bit/s, for choosing donors
  std::uint64_t arriving = 0;    ///< 1: the peer is still downloading `state`
  std::uint64_t unreachable = 0; ///< 1: only hosts that the peer has dialled can reach it
  actors::reach reach = actors::reach::unknown;
  /// Milliseconds until the peer's next record at the latest, if it computes until then. Other
  /// peers count its expected samples for that time. 0: the peer computes nothing now.
  std::uint64_t computes_for_ms = 0;
  /// For training.overlap: the samples of the peer's contribution to the round that leads on from
  /// `state`.
  std::uint64_t contribution = 0;
  round_part part = round_part::takes_part;

  bool operator==(const progress&) const = default;

  payload pack() const;
  /// Empty if `bytes` is not the result of pack().
  static std::optional<progress> unpack(const payload& bytes);
};

struct branch {
  std::uint64_t epoch = 0;
  std::uint64_t history = 0;
  state_id state;

  /// True if this branch precedes `other`.
  bool leads(const branch& other) const noexcept {
    if (*this == other) return false;
    if (epoch != other.epoch) return epoch > other.epoch;
    if (history != other.history) return history > other.history;
    return state < other.state;
  }
  /// The state decides. Its history is a number that a record claims.
  bool operator==(const branch& other) const noexcept {
    return epoch == other.epoch && state == other.state;
  }
};

class progress_table {
public:
  /// The bounds on the numbers of one record; a larger number counts as the bound.
  struct limits {
    std::uint64_t samples = ~std::uint64_t{0};
    std::uint64_t computes_for_ms = ~std::uint64_t{0};
  };
  /// The peer and the member behind an address.
  struct owner {
    peer_id peer = 0;
    member_id member;
  };
  using owner_of = std::function<owner(const caf::actor& address)>;

  struct entry {
    progress what;
    caf::actor address;
    member_id member;                        ///< zero if the owners are not known
    duration changed{};                      ///< when this content was first read
    std::uint64_t look = 0;                  ///< the number of the last reading that found it
    duration counted{};                      ///< when this number of samples was first read
    std::int64_t counted_expires_utc_ns = 0; ///< expiration of the record that first had it
    std::int64_t expires_utc_ns = 0;         ///< expiration of the latest record
  };

  progress_table() = default;
  explicit progress_table(limits most) : most_(most) {}

  /// Replaces the table by the result of a DHT look-up. Records of `self` are left out. With `of`,
  /// a record counts only if its sub-key names the peer of its address. A member's record that
  /// expires last replaces the others. Records of `self_member` are left out.
  void replace(const std::vector<shared<record>>& records, peer_id self, duration now,
               const owner_of& of = {}, const member_id& self_member = {});
  /// The peer gave away false bytes, so its records count no more. A branch that only such peers
  /// claim leads nobody: nobody could download it.
  void distrust(peer_id peer);
  /// Ascending by peer.
  const std::vector<std::pair<peer_id, entry>>& entries() const noexcept { return entries_; }
  /// The time at which the records were read last.
  duration looked() const noexcept { return looked_; }
  /// Null if the peer is unknown.
  const entry* find(peer_id peer) const;
  /// Requires: find(peer).
  const entry& at(peer_id peer) const { return *find(peer); }

  /// A round from `state` has ended with a certificate for these members. A member with samples on
  /// that state may stay away from one such round. If it stays away from the next one, too, its
  /// samples and its speed do not count until it takes part again. So samples that nobody has delay
  /// two rounds, and not all of them.
  void took_part(const std::set<member_id>& members, const state_id& state);

  /// A round has ended with a certificate for these weights, in samples. All members had the same
  /// time for them, so their weights are to this peer's as their speeds are to `own_speed`. From
  /// now on a claimed speed counts up to most_ratio times the speed that the weights show. A member
  /// without a weight counts up to most_ratio times the fastest one.
  void certified(const std::map<member_id, std::uint64_t>& weights, const member_id& self,
                 double own_speed);
  static constexpr double most_ratio = 4;

  /// For methods whose states have no chain: the leading branch among the records and `own`, by
  /// epoch, history and state. A branch does not count if its epoch is more than one beyond the
  /// upper median of all epochs. Nor does one that at most half as many members follow as the
  /// branch with most members. So it takes more than a third of the members to move this peer, and
  /// half of them to move it far. A branch with `enough` members counts in any case. So does
  /// `next`, to which this peer has itself made the step. Arriving peers do not count: two joiners
  /// that believed each other would keep up a branch that no peer holds any more.
  branch leading(const branch& own, const std::optional<branch>& next = {},
                 std::size_t enough = ~std::size_t{0}) const;
  /// The branch with the most members, and of two with equally many, the leading one. `own` has no
  /// member.
  branch most_followed(const branch& own) const;
  /// The other peers' samples on `which`.
  std::uint64_t samples_on(const branch& which) const;
  /// The same, with the samples that the peers are expected to have computed since their records
  /// changed. A peer one step behind counts as having stepped at `stepped`, as this peer did. A
  /// record counts without an extrapolation if its peer was silent at the last reading for longer
  /// than announced, plus a second. That peer, or its record, is lost.
  double samples_expected_on(const branch& which, duration now, duration stepped) const;
  /// The sum of the speeds of the other peers within one epoch. Just after a step, some records
  /// still show the former epoch.
  double samples_per_second_near(std::uint64_t epoch) const;
  /// With overlap: the samples of the other peers' contributions to the round that leads on from
  /// `state`. Peers that are still at `parent` count with the samples that they have computed.
  std::uint64_t contributions_to(std::uint64_t epoch, const state_id& state,
                                 const state_id& parent) const;
  /// True if a peer on `state` has contributed to that round, or has its result.
  bool round_under_way(std::uint64_t epoch, const state_id& state) const;
  struct contributors {
    std::size_t count = 0, reachable = 0; ///< reachable: those that may lead and reduce
  };
  /// The peers that have contributed to that round and have no result yet.
  contributors contributors_to(std::uint64_t epoch, const state_id& state) const;
  /// True if a peer on `state` goes on without a round.
  bool passed(std::uint64_t epoch, const state_id& state) const;
  /// The peers that have the result of that round.
  std::vector<peer_id> peers_through(std::uint64_t epoch, const state_id& state) const;
  /// The samples of peers at `epoch`, whatever their state.
  std::uint64_t samples_at(std::uint64_t epoch) const;
  /// The number of peers within one epoch.
  std::size_t peers_near(std::uint64_t epoch) const;
  /// The median epoch of the peers, `own` included; the upper one of two in the middle. The highest
  /// epoch would not do: a few peers that were cut off may have gone on alone.
  std::uint64_t median_epoch(std::uint64_t own) const;
  /// The peers with a state of `epoch` or a later one.
  std::vector<peer_id> peers_from(std::uint64_t epoch) const;
  /// The peers on that branch.
  std::vector<peer_id> peers_on(const branch& which) const;
  /// The peers on `state` without the result of its round, and those on `parent`, one step behind.
  /// The latter are just stepping.
  std::vector<expected_peer> expected_on(std::uint64_t epoch, const state_id& state,
                                         const state_id& parent) const;
  /// For leaders without a chain: the number of members that have to take the result of that round.
  /// These are more than a third of the `own` takers and of the expected peers. So a peer that has
  /// most of the samples makes no step alone while the others take part.
  std::uint32_t takers_needed(std::uint64_t epoch, const state_id& state, const state_id& parent,
                              std::size_t own) const;

private:
  bool awaits(const entry& what, std::uint64_t epoch, const state_id& state,
              const state_id& parent) const;
  bool counts(const entry& of) const;
  /// The speed in samples a second that counts for this record.
  double speed_of(const entry& of) const;
  void keep_one_of_each_member();

  // A vector: sums over all entries are made several times for each message.
  std::vector<std::pair<peer_id, entry>> entries_;
  limits most_;
  std::set<peer_id> distrusted_;
  std::map<member_id, unsigned> absences_; // rounds in a row that a member stayed away from
  std::map<member_id, double> shown_;      // the speeds that certified weights show
  double fastest_ = 0;                     // the largest of them and of this peer's; 0: unknown
  duration looked_{};                      // when the records were last read
  std::uint64_t looks_ = 0;
};

} // namespace shoal::actors
