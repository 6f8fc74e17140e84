// Who may use which sample, and where each one ended: the state machine of a data shard, without
// actors, clocks or messages. The index space is unbounded; every index is in exactly one state:
//
//   unissued --lease--> leased(peer, expires) --commit, all parts--> committed(epoch, group, peer)
//                         |    ^             \--commit, some parts-> partial(epoch, group, peer,
//                         parts)
//      expire, give back, |    | lease (the lowest returned indices come first)
//      commit of no part  v    |
//                        returned
//
// committed and partial are final. A sample is committed when the round that holds its gradient is,
// so a commit also wins against what happened to the lease meanwhile: returned indices are
// committed as if they were still leased (nobody used them), indices leased to somebody else are
// taken from that peer, and reported, because that peer may have used them already. Indices that
// are final already are reported as repeated; the same commit again (several members send it)
// changes nothing.
//
// Of several replicas of a shard each has such a ledger, and fresh indices of its own: replica
// incarnation t issues from its territory, [t, t + 1) * territory_size, so that no two ever issue
// the same one, whatever they know of each other. Who takes over goes on with what the former
// primary told it (take_over). What that one had not told yet belongs to nobody, `leased` to peer
// 0, until its peer claims it by renewing, returning or committing it; unclaimed, it expires like
// any lease. `doubt` is what the former primary may still change, if it may be alive: indices of it
// that are issued again are reported. Those that are committed here stay in doubt, too, until we
// meet it or for good: over there another round may have used them.
#pragma once

#include "actors/data/ledger_states.hpp"
#include "actors/ids.hpp"
#include "kernels/base/interval_map.hpp"
#include "kernels/base/units.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace shoal::actors {

/// Indices that one incarnation of a replica may issue; the first of one that runs alone are 0, 1,
/// ...
inline constexpr std::uint64_t territory_size = std::uint64_t{1} << 32;

class sample_ledger {
public:
  using kind = index_state::kind;

  /// Leases that a peer had and has no more.
  struct loss {
    peer_id peer = 0;
    std::vector<sample_range> ranges;
  };

  struct renewal {
    std::vector<sample_range> renewed;
    std::vector<sample_range> claimed; ///< of those: not known to be this peer's before
    std::vector<sample_range> lost;    ///< leased to this peer once, not any more
    std::vector<sample_range> unknown; ///< never leased to this peer
  };

  struct give_back_result {
    std::vector<sample_range> returned;
    std::vector<sample_range> stale; ///< as renewal::lost, or final: nothing changed
    std::vector<sample_range> unknown;
  };

  struct commit_result {
    std::vector<sample_range> committed, partial;
    std::vector<sample_range> returned; ///< no part held them: the lease ended
    std::vector<sample_range> already;  ///< the same was said before
    std::vector<sample_range>
        repeated; ///< final elsewhere, or also leased to another; not said before
    std::vector<sample_range> disputed; ///< the same round, other parts; the first word stands
    std::vector<sample_range>
        unknown; ///< never leased to that peer, nor by another primary: nothing changed
    std::vector<loss> revoked; ///< leases that others lost to this commit
  };

  /// What verification needs to explain an index that two rounds may hold, or a round's members see
  /// differently.
  struct report {
    enum class kind : std::uint8_t { repeated, disputed };
    kind what = kind::repeated;
    sample_range range;
    std::uint64_t epoch = 0;
    peer_id peer = 0;
    group_id group;
    std::uint32_t parts_included = 0, parts_total = 0;
  };
  /// More are counted, not kept: a flood of false commits must not fill the memory.
  static constexpr std::size_t max_reports = std::size_t{1} << 20;

  struct row {
    std::uint64_t first = 0, count = 0;
    index_state state;
  };

  explicit sample_ledger(duration lease_time, std::uint64_t territory = 0)
      : lease_time_(lease_time), territory_(territory), next_(territory * territory_size) {}

  /// Leases `count` indices to `peer` until now + lease time, fewer if no more are free and
  /// reserved. Ascending.
  std::vector<sample_range> lease(peer_id peer, std::uint32_t count, duration now);

  // `ranges` below: as checked_ranges() returns them (ascending, disjoint).

  renewal renew(peer_id peer, std::span<const sample_range> ranges, duration now);
  give_back_result give_back(peer_id peer, std::span<const sample_range> ranges);
  /// Takes back every lease that ended at or before `now`; ascending by peer.
  std::vector<loss> expire(duration now);
  /// `peer`'s gradient over `ranges` is in `parts_included` of the `parts_total` parts of the
  /// round. Requires: parts_included <= parts_total, parts_total > 0.
  commit_result commit(peer_id peer, std::span<const sample_range> ranges, std::uint64_t epoch,
                       group_id group, std::uint32_t parts_included, std::uint32_t parts_total);

  bool has_leases() const noexcept { return !by_expiry_.empty(); }
  /// Requires: has_leases().
  duration next_expiry() const { return by_expiry_.begin()->first; }

  /// Indices below this one have been issued, gaps aside.
  std::uint64_t high_water() const { return all_.end(); }
  std::uint64_t count(kind state) const noexcept {
    return counts_[static_cast<std::size_t>(state)];
  }
  std::uint64_t leased_by(peer_id peer) const;

  /// All issued indices, ascending; gaps only before the beginning of a territory.
  std::vector<row> snapshot() const;
  const std::vector<report>& reports() const noexcept { return reports_; }
  /// Indices in all reports, those that were not kept included.
  std::uint64_t reported(report::kind what) const noexcept {
    return reported_counts_[static_cast<std::size_t>(what)];
  }
  duration lease_time() const noexcept { return lease_time_; }

  // One of several replicas.

  using piece = interval_map<index_state>::piece;
  /// What happened since the last call, in order; nothing unless record_changes(true).
  struct changes {
    std::vector<piece> states;
    std::vector<report> reports;
    interval_set doubtful;       ///< now reported
    interval_set doubt, certain; ///< in doubt from now on; not any more
    std::vector<std::pair<peer_id, interval_set::piece>>
        former; ///< leases that another primary knew of
    bool empty() const noexcept {
      return states.empty() && reports.empty() && doubtful.empty() && doubt.empty() &&
             certain.empty() && former.empty();
    }
  };
  /// From now on; indices that are returned meanwhile are leased again only after release().
  void record_changes(bool on);
  changes take_changes() { return std::exchange(changes_, {}); }
  /// Indices that are to be issued, since the last call, without having been issued here: those of
  /// our territory in which another primary had a say meanwhile, and those that a primary whose
  /// place we took had reserved (when a lease's time has passed, and nobody claims them).
  std::vector<sample_range> take_skipped() { return std::exchange(skipped_, {}); }
  void release(std::span<const piece> states);

  std::uint64_t territory() const noexcept { return territory_; }
  /// Fresh indices below `end` may be issued. Without a call: all of the territory.
  void reserve(std::uint64_t end) { limit_ = end; }
  /// The next fresh index.
  std::uint64_t next() const noexcept { return next_; }
  /// Indices of territories below this one that nobody knows here belong to whoever claims them.
  void know_territories(std::uint64_t below) {
    known_territories_ = std::max(known_territories_, below);
  }
  std::uint64_t known_territories() const noexcept { return known_territories_; }

  /// The replica of that territory cannot be reached, and may go on without us: all that is not
  /// final is in doubt, and all that it may issue.
  void part_from(std::uint64_t territory);
  /// The former primary, of that territory, is gone. It may have issued indices below `reserved`,
  /// and have leased again what was returned: those are nobody's now. Not `certain`: part_from(),
  /// too.
  void take_over(std::uint64_t territory, std::uint64_t reserved, bool certain, duration now);
  /// Whoever knew what became of the indices of all territories below ours is gone: they are
  /// doubtful, and stay so.
  void doubt_all_before();
  /// Those of `ranges` in doubt, which are in doubt no more, but reported.
  std::vector<sample_range> settle_doubt(std::span<const sample_range> ranges);
  /// Another primary may be there whom we have not met since we parted: what we know is not all. A
  /// commit of what its peer never had from us is believed, and reported if somebody else has it.
  bool parted() const noexcept { return !doubt_.empty(); }
  /// Whether each of `ranges` may have been leased to anybody by a primary of which we do not know
  /// everything: who says that it had them is no liar.
  bool may_be_anothers(std::span<const sample_range> ranges) const;
  /// Those of `ranges` that `peer` never got from us.
  std::vector<sample_range> unknown_to(peer_id peer, std::span<const sample_range> ranges) const;
  const interval_set& doubt() const noexcept { return doubt_; }
  const interval_set& doubtful() const noexcept { return doubtful_; }

  // What another replica says.
  void apply(const piece& what) { set(what.first, what.end, what.value); }
  void apply_former(peer_id peer, std::uint64_t first, std::uint64_t end) {
    former_[peer].insert(first, end);
  }
  void apply_report(const report& what);
  void apply_doubt(std::uint64_t first, std::uint64_t end) { doubt_.insert(first, end); }
  void apply_certain(std::uint64_t first, std::uint64_t end) { doubt_.erase(first, end); }
  void apply_doubtful(std::uint64_t first, std::uint64_t end) { doubtful_.insert(first, end); }
  const std::map<peer_id, interval_set>& former() const noexcept { return former_; }
  /// Everything but what fresh indices we may issue becomes what `other` says.
  void replace_by(sample_ledger other);

  struct merge_result {
    std::vector<report> repeated;       ///< used by a round of each
    std::vector<loss> revoked;          ///< leases of ours that end
    std::vector<sample_range> doubtful; ///< of two peers, one by each, and not reported before
  };
  /// Takes in what `other`, of another primary that went on without us, has. Final states come
  /// first, then leases of peers, then what belongs to nobody. Doubt says what was issued to nobody
  /// since we parted: of two peers' leases, that of who is not in doubt where it is known, else
  /// ours, and the index is doubtful if nobody has reported it yet. What of our territory we have
  /// not issued, and it gave to nobody, is free. Ends all doubt, unless there is a third one that
  /// we parted from, and the other one has not met it either.
  merge_result merge(const sample_ledger& other);

private:
  using report_key = std::tuple<report::kind, group_id, std::uint64_t, peer_id>;

  /// Behind the last index of that territory that is known.
  std::uint64_t end_of(std::uint64_t territory) const;
  /// Whether another replica issued [first, end), of which nobody knows here.
  bool claimable(std::uint64_t first, std::uint64_t end) const noexcept;
  /// Those of `ranges` that `peer` has or had, as pieces with one state each; the others go to
  /// `unknown`.
  std::vector<piece> owned(peer_id peer, std::span<const sample_range> ranges,
                           std::vector<sample_range>& unknown) const;
  /// `theirs`: a stretch of one state, and of one doubt, here and there.
  void merge_piece(const piece& theirs, bool unchanged_there, interval_set& conflicts,
                   std::map<peer_id, interval_set>& revoked, merge_result& out);
  /// Those of [first, end) of which that may be so.
  std::vector<interval_set::piece> unsure(std::uint64_t first, std::uint64_t end) const;
  /// Replicas that we parted from and have not met again: all that they may issue is in doubt.
  std::vector<std::uint64_t> unmet() const;
  void add_former(peer_id peer, std::uint64_t first, std::uint64_t end);
  void add_doubt(std::uint64_t first, std::uint64_t end);
  void end_doubt(std::uint64_t first, std::uint64_t end);
  void add_doubtful(std::uint64_t first, std::uint64_t end);
  /// `other` has told what became of what we doubt.
  void end_doubt_with(const sample_ledger& other);
  /// What another primary issued instead of us, of what is reserved, counts as issued, and what is
  /// below it as returned.
  void fill_territory();
  void set(std::uint64_t first, std::uint64_t end, const index_state& to);
  void commit_piece(const piece& from, const index_state& to, commit_result& out);
  void report_once(report::kind what, const piece& where, const index_state& said,
                   std::vector<sample_range>& out);

  duration lease_time_;
  std::uint64_t territory_, next_;
  std::uint64_t limit_ = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t known_territories_ = 0;
  ledger_states all_;
  interval_set returned_; // those that may be leased again
  interval_set doubt_, doubtful_;
  bool recording_ = false;
  changes changes_;
  std::vector<sample_range> skipped_;
  std::map<duration, interval_set> by_expiry_; // the leased ones
  std::map<peer_id, std::uint64_t> leased_;    // how many
  std::map<peer_id, interval_set> former_;     // leases that ended otherwise than by commit
  std::array<std::uint64_t, 4> counts_{};
  std::vector<report> reports_;
  std::map<report_key, interval_set> reported_;
  std::array<std::uint64_t, 2> reported_counts_{};
};

} // namespace shoal::actors
