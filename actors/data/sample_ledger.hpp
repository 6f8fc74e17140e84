// The ledger of a data shard: which peer may use which sample, and how each sample ended. A state
// machine without actors, clocks or messages. The index space is unbounded. Every index is in
// exactly one state:
//
//   unissued --lease--> leased(peer, expires) --commit, all parts---> committed
//                         |    ^             \--commit, some parts--> partial
//      expire, give back, |    | lease (the lowest returned index first)
//      commit of no part  v    |
//                        returned
//
// `committed` and `partial` are final, and have the round (epoch, group), the peer and the number
// of parts. A commit records that a round used a sample, so it wins over later changes of the
// lease. A returned index is committed as if it were still leased: no other peer has used it. An
// index that is leased to another peer is taken from that peer, and reported, because that peer may
// have used it, too. An index that is final already is reported as repeated. Members send the same
// commit several times; a repetition changes nothing.
//
// Replicas: each replica of a shard has a ledger. Replica incarnation t issues fresh indices from
// its own block, [t, t + 1) * index_block_size, so no two replicas ever issue the same fresh index.
// A replica that takes over continues the ledger that it has copied (take_over). Leases that the
// former primary issued and did not replicate are unclaimed, which is `leased` to peer 0. They stay
// so until their peer renews, returns or commits them. An unclaimed lease expires like any other.
//
// Divergence: if the former primary may be alive, it may still change what is not final, and issue
// indices of its own block. These indices are uncertain (uncertain()). An uncertain index that is
// issued again here is reported as doubtful. An index that is committed here stays uncertain, too,
// until the two ledgers are merged: a round at the other primary may have used it.
#pragma once

#include "actors/data/ledger_states.hpp"
#include "actors/data/shard_record.hpp"
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

class sample_ledger {
public:
  using kind = index_state::kind;

  /// Leases that a peer has lost.
  struct loss {
    peer_id peer = 0;
    std::vector<sample_range> ranges;
  };

  struct renewal {
    std::vector<sample_range> renewed;
    std::vector<sample_range>
        claimed;                    ///< leases in `renewed` that were not known to be this peer's
    std::vector<sample_range> lost; ///< once leased to this peer, and no longer
    std::vector<sample_range> unknown; ///< never leased to this peer
  };

  struct give_back_result {
    std::vector<sample_range> returned;
    std::vector<sample_range> stale; ///< leases lost or final already: nothing changed
    std::vector<sample_range> unknown;
  };

  struct commit_result {
    std::vector<sample_range> committed, partial;
    std::vector<sample_range> returned; ///< no part held them: the lease ended
    std::vector<sample_range> already;  ///< reported before with the same content
    /// Final elsewhere, or also leased to another peer; not reported before.
    std::vector<sample_range> repeated;
    std::vector<sample_range>
        disputed; ///< the same round with other parts; the first report stands
    /// Not leased to that peer, here or by another primary: nothing changed.
    std::vector<sample_range> unknown;
    std::vector<loss> revoked; ///< leases that other peers lost to this commit
  };

  /// A report for the verification. It explains an index that two rounds may hold, or for which
  /// members of a round name different parts.
  struct report {
    enum class kind : std::uint8_t { repeated, disputed };
    kind what = kind::repeated;
    sample_range range;
    std::uint64_t epoch = 0;
    peer_id peer = 0;
    group_id group;
    std::uint32_t parts_included = 0, parts_total = 0;
  };
  /// Further reports are counted and not kept, so that false commits cannot fill the memory.
  static constexpr std::size_t max_reports = std::size_t{1} << 20;
  /// A replica reserves at most this many fresh indices at a time.
  static constexpr std::uint64_t most_reserved = std::uint64_t{1} << 20;

  struct row {
    std::uint64_t first = 0, count = 0;
    index_state state;
  };

  explicit sample_ledger(duration lease_time, std::uint64_t index_block = 0)
      : lease_time_(lease_time), index_block_(index_block), next_(index_block * index_block_size) {}

  /// Leases `count` indices to `peer` until now + lease time, or fewer if fewer are reserved. The
  /// result is ascending.
  std::vector<sample_range> lease(peer_id peer, std::uint32_t count, duration now);

  // The following `ranges` are results of checked_ranges(): ascending and disjoint.

  renewal renew(peer_id peer, std::span<const sample_range> ranges, duration now);
  give_back_result give_back(peer_id peer, std::span<const sample_range> ranges);
  /// Takes back every lease that ended at or before `now`. The result is ascending by peer.
  std::vector<loss> expire(duration now);
  /// `parts_included` of the `parts_total` parts of a round contain `peer`'s gradient over
  /// `ranges`. Requires: parts_included <= parts_total, parts_total > 0.
  commit_result commit(peer_id peer, std::span<const sample_range> ranges, std::uint64_t epoch,
                       group_id group, std::uint32_t parts_included, std::uint32_t parts_total);

  bool has_leases() const noexcept { return !by_expiry_.empty(); }
  /// Requires: has_leases().
  duration next_expiry() const { return by_expiry_.begin()->first; }

  /// The end of all issued indices; there may be gaps below it.
  std::uint64_t high_water() const { return all_.end(); }
  std::uint64_t count(kind state) const noexcept {
    return counts_[static_cast<std::size_t>(state)];
  }
  std::uint64_t leased_by(peer_id peer) const;

  /// All issued indices, ascending. Gaps are only before the begin of a block.
  std::vector<row> snapshot() const;
  const std::vector<report>& reports() const noexcept { return reports_; }
  /// The number of indices in all reports, with those that were not kept.
  std::uint64_t reported(report::kind what) const noexcept {
    return reported_counts_[static_cast<std::size_t>(what)];
  }
  duration lease_time() const noexcept { return lease_time_; }

  // For replicas.

  using piece = interval_map<index_state>::piece;
  /// The changes since the last call, in order; empty before record_changes(true).
  struct changes {
    std::vector<piece> states;
    std::vector<report> reports;
    interval_set doubtful;           ///< reported as doubtful now
    interval_set uncertain, settled; ///< uncertain from now on, and no longer uncertain
    /// Ended leases that another primary recorded.
    std::vector<std::pair<peer_id, interval_set::piece>> former;
    bool empty() const noexcept {
      return states.empty() && reports.empty() && doubtful.empty() && uncertain.empty() &&
             settled.empty() && former.empty();
    }
  };
  /// Starts or stops the recording of changes. While it runs, returned indices are leased again
  /// only after release().
  void record_changes(bool on);
  changes take_changes() { return std::exchange(changes_, {}); }
  /// Indices, since the last call, that will be issued without having been issued here. Some are in
  /// this replica's own block, where another primary acted meanwhile. A former primary had reserved
  /// the others, and their peers may claim them until a lease time has passed.
  std::vector<sample_range> take_skipped() { return std::exchange(skipped_, {}); }
  void release(std::span<const piece> states);

  std::uint64_t index_block() const noexcept { return index_block_; }
  /// Allows fresh indices below `end`. Without a call, the whole block is allowed.
  void reserve(std::uint64_t end) { limit_ = end; }
  /// The next fresh index.
  std::uint64_t next() const noexcept { return next_; }
  /// True if this replica has issued its whole block.
  bool exhausted() const noexcept { return next_ >= (index_block_ + 1) * index_block_size; }
  /// The blocks below this number belong to known replicas. Unknown indices in them belong to the
  /// first peer that claims them.
  void know_index_blocks(std::uint64_t below) {
    known_index_blocks_ = std::max(known_index_blocks_, below);
  }
  std::uint64_t known_index_blocks() const noexcept { return known_index_blocks_; }

  /// Diverges from the replica of that block, which cannot be reached and may be serving. All
  /// indices that are not final become uncertain, and so do all that it may issue.
  void diverge_from(std::uint64_t index_block);
  /// Takes over from the former primary, of that block, which is gone. It may have issued indices
  /// below `reserved`, and leased returned ones again: these leases become unclaimed. Only
  /// most_reserved indices above the known ones count. Unless its death is confirmed,
  /// diverge_from() follows.
  void take_over(std::uint64_t index_block, std::uint64_t reserved, bool confirmed_dead,
                 duration now);
  /// No live replica knows the indices of earlier blocks. They become doubtful for good.
  void mark_all_before_doubtful();
  /// The uncertain ones of `ranges`. They become doubtful instead.
  std::vector<sample_range> report_uncertain(std::span<const sample_range> ranges);
  /// True if another primary may exist that has not been merged since the divergence. A commit of
  /// indices that the peer never had from this primary is then believed, and reported if another
  /// peer has them.
  bool diverged() const noexcept { return !uncertain_.empty(); }
  /// True if another primary may have leased each of `ranges`. A peer that claims them is then not
  /// faulty.
  bool may_be_leased_elsewhere(std::span<const sample_range> ranges) const;
  /// The number of indices in `ranges` that this primary has no record of.
  std::uint64_t unrecorded(std::span<const sample_range> ranges) const;
  /// The part of `ranges` that `peer` never got from this primary.
  std::vector<sample_range> unknown_to(peer_id peer, std::span<const sample_range> ranges) const;
  const interval_set& uncertain() const noexcept { return uncertain_; }
  const interval_set& doubtful() const noexcept { return doubtful_; }

  // Applies changes of another replica.
  void apply(const piece& what) { set(what.first, what.end, what.value); }
  void apply_former(peer_id peer, std::uint64_t first, std::uint64_t end) {
    former_[peer].insert(first, end);
  }
  void apply_report(const report& what);
  void apply_uncertain(std::uint64_t first, std::uint64_t end) { uncertain_.insert(first, end); }
  void apply_settled(std::uint64_t first, std::uint64_t end) { uncertain_.erase(first, end); }
  void apply_doubtful(std::uint64_t first, std::uint64_t end) { doubtful_.insert(first, end); }
  const std::map<peer_id, interval_set>& former() const noexcept { return former_; }
  /// Takes the content of `other`, except for this replica's own fresh indices.
  void replace_by(sample_ledger other);

  struct merge_result {
    std::vector<report> repeated; ///< indices that a round of each primary used
    std::vector<loss> revoked;    ///< leases of this primary that end
    std::vector<sample_range>
        doubtful; ///< leases of two peers, one from each primary; not reported before
  };
  /// Merges the ledger of another primary that this one has diverged from. Final states win over
  /// leases of peers, and those over unclaimed leases. A primary has not leased an uncertain index
  /// since the divergence. If both primaries leased an index to different peers, the lease of the
  /// primary at which it is not uncertain counts, else this primary's. The index becomes doubtful
  /// unless it is reported already. Own fresh indices that are unissued here and unclaimed there
  /// become free. The merge ends all uncertainty, unless a third replica has diverged from both.
  merge_result merge(const sample_ledger& other);

private:
  using report_key = std::tuple<report::kind, group_id, std::uint64_t, peer_id>;

  /// The end of the known indices of that block.
  std::uint64_t end_of(std::uint64_t index_block) const;
  /// True if another replica issued [first, end) and this ledger has no record of it.
  bool claimable(std::uint64_t first, std::uint64_t end) const noexcept;
  /// The part of `ranges` that `peer` has or had, as pieces with one state each. The rest is added
  /// to `unknown`.
  std::vector<piece> owned(peer_id peer, std::span<const sample_range> ranges,
                           std::vector<sample_range>& unknown) const;
  /// Merges one piece. Within `theirs`, state and uncertainty are the same throughout, here and
  /// there.
  void merge_piece(const piece& theirs, bool unchanged_there, interval_set& conflicts,
                   std::map<peer_id, interval_set>& revoked, merge_result& out);
  /// The parts of [first, end) that another primary may have leased.
  std::vector<interval_set::piece> possibly_leased_elsewhere(std::uint64_t first,
                                                             std::uint64_t end) const;
  /// Blocks of replicas that are diverged and not merged: all their indices are uncertain.
  std::vector<std::uint64_t> unmerged_blocks() const;
  void add_former(peer_id peer, std::uint64_t first, std::uint64_t end);
  void add_uncertain(std::uint64_t first, std::uint64_t end);
  void settle(std::uint64_t first, std::uint64_t end);
  void add_doubtful(std::uint64_t first, std::uint64_t end);
  /// Ends the uncertainty that the content of `other` resolves.
  void settle_with(const sample_ledger& other);
  /// Counts reserved indices that another primary issued from this block as issued, and those below
  /// them as returned.
  void fill_index_block();
  void set(std::uint64_t first, std::uint64_t end, const index_state& to);
  void commit_piece(const piece& from, const index_state& to, commit_result& out);
  void report_once(report::kind what, const piece& where, const index_state& said,
                   std::vector<sample_range>& out);

  duration lease_time_;
  std::uint64_t index_block_, next_;
  std::uint64_t limit_ = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t known_index_blocks_ = 0;
  ledger_states all_;
  interval_set returned_; // indices that may be leased again
  interval_set uncertain_, doubtful_;
  bool recording_ = false;
  changes changes_;
  std::vector<sample_range> skipped_;
  std::map<duration, interval_set> by_expiry_; // leased indices
  std::map<peer_id, std::uint64_t> leased_;    // number of leased indices
  std::map<peer_id, interval_set> former_;     // leases that ended without a commit
  std::array<std::uint64_t, 4> counts_{};
  std::vector<report> reports_;
  std::map<report_key, interval_set> reported_;
  std::array<std::uint64_t, 2> reported_counts_{};
};

} // namespace shoal::actors
