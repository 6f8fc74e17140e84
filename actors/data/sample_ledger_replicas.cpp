// The ledger of one of several replicas: takeover, divergence and the merge of two ledgers.
#include "actors/data/sample_ledger.hpp"
#include "actors/data/sample_ranges.hpp"

#include <algorithm>

namespace shoal::actors {

void sample_ledger::record_changes(bool on) {
  recording_ = on;
  changes_ = {};
  if (on) return;
  // All indices that were held back.
  for (const auto& p : all_.pieces())
    if (p.value.state == kind::returned) returned_.insert(p.first, p.end);
}

void sample_ledger::release(std::span<const piece> states) {
  for (const auto& was : states)
    if (was.value.state == kind::returned)
      for (const auto& p : all_.pieces(was.first, was.end))
        if (p.value.state == kind::returned) returned_.insert(p.first, p.end);
}

void sample_ledger::diverge_from(std::uint64_t index_block) {
  for (const auto& p : all_.pieces())
    if (p.value.state == kind::leased || p.value.state == kind::returned)
      add_uncertain(p.first, p.end);
  if (index_block == index_block_) return;
  know_index_blocks(index_block + 1);
  // That replica issues in ascending order. The gaps before claimed indices become uncertain as
  // well.
  const auto end = (index_block + 1) * index_block_size;
  auto at = index_block * index_block_size;
  for (const auto& p : all_.pieces(at, end)) {
    if (at < p.first) add_uncertain(at, p.first);
    at = p.end;
  }
  if (at < end) add_uncertain(at, end);
}

void sample_ledger::add_former(peer_id peer, std::uint64_t first, std::uint64_t end) {
  auto& known = former_[peer];
  if (recording_)
    for (const auto& p : known.missing(first, end)) changes_.former.emplace_back(peer, p);
  known.insert(first, end);
}

void sample_ledger::add_uncertain(std::uint64_t first, std::uint64_t end) {
  uncertain_.insert(first, end);
  if (!recording_) return;
  changes_.uncertain.insert(first, end);
  changes_.settled.erase(first, end);
}

void sample_ledger::settle(std::uint64_t first, std::uint64_t end) {
  const auto known = uncertain_.pieces(first, end);
  if (known.empty()) return;
  uncertain_.erase(first, end);
  if (!recording_) return;
  changes_.uncertain.erase(first, end);
  for (const auto& p : known) changes_.settled.insert(p.first, p.end);
}

void sample_ledger::add_doubtful(std::uint64_t first, std::uint64_t end) {
  doubtful_.insert(first, end);
  if (recording_) changes_.doubtful.insert(first, end);
}

void sample_ledger::take_over(std::uint64_t index_block, std::uint64_t reserved,
                              bool confirmed_dead, duration now) {
  index_state unclaimed;
  unclaimed.state = kind::leased;
  unclaimed.expires = now + lease_time_;
  for (const auto& p : all_.pieces())
    if (p.value.state == kind::returned) set(p.first, p.end, unclaimed);
  const auto known = end_of(index_block);
  reserved = std::min({reserved, known + most_reserved, (index_block + 1) * index_block_size});
  if (index_block != index_block_ && known < reserved) {
    set(known, reserved, unclaimed);
    append_range(skipped_, known, reserved);
  }
  if (!confirmed_dead) diverge_from(index_block);
}

std::vector<interval_set::piece> sample_ledger::possibly_leased_elsewhere(std::uint64_t first,
                                                                          std::uint64_t end) const {
  if (diverged()) return {{first, end, {}}};
  return doubtful_.pieces(first, end);
}

bool sample_ledger::may_be_leased_elsewhere(std::span<const sample_range> ranges) const {
  return std::all_of(ranges.begin(), ranges.end(), [this](const auto& range) {
    return diverged() || doubtful_.covers(range.first, range.end());
  });
}

std::uint64_t sample_ledger::unrecorded(std::span<const sample_range> ranges) const {
  std::uint64_t out = 0;
  for (const auto& range : ranges) {
    out += range.count;
    for (const auto& p : all_.pieces(range.first, range.end())) out -= p.size();
  }
  return out;
}

std::vector<sample_range> sample_ledger::unknown_to(peer_id peer,
                                                    std::span<const sample_range> ranges) const {
  std::vector<sample_range> out;
  (void)owned(peer, ranges, out);
  return out;
}

std::vector<std::uint64_t> sample_ledger::unmerged_blocks() const {
  // Block numbers may be far apart, so the search follows the uncertain ranges.
  std::vector<std::uint64_t> out;
  for (const auto& p : uncertain_.pieces())
    for (auto index_block = p.first / index_block_size;
         (index_block + 1) * index_block_size <= p.end && index_block < known_index_blocks_;
         ++index_block)
      if (index_block != index_block_) out.push_back(index_block);
  return out;
}

void sample_ledger::settle_with(const sample_ledger& other) {
  // `other` has resolved the replicas that it has not diverged from: they have been merged, or are
  // dead and fully recorded. Or `other` reports all their indices.
  const auto unmerged_there = other.unmerged_blocks();
  for (const auto index_block : unmerged_blocks())
    if (std::find(unmerged_there.begin(), unmerged_there.end(), index_block) ==
        unmerged_there.end())
      settle(end_of(index_block), (index_block + 1) * index_block_size);
  if (unmerged_blocks().empty()) settle(0, std::numeric_limits<std::uint64_t>::max());
}

void sample_ledger::fill_index_block() {
  const auto limit = std::min(limit_, (index_block_ + 1) * index_block_size);
  if (limit <= next_) return;
  const auto known = all_.pieces(next_, limit);
  if (known.empty()) return;
  for (const auto& p : known) {
    if (next_ < p.first) {
      set(next_, p.first, {});
      append_range(skipped_, next_, p.first);
    }
    next_ = p.end;
  }
}

std::uint64_t sample_ledger::end_of(std::uint64_t index_block) const {
  const auto begin = index_block * index_block_size;
  const auto known = all_.pieces(begin, begin + index_block_size);
  return known.empty() ? begin : known.back().end;
}

void sample_ledger::mark_all_before_doubtful() {
  if (index_block_ > 0) doubtful_.insert(0, index_block_ * index_block_size);
  know_index_blocks(index_block_);
}

std::vector<sample_range> sample_ledger::report_uncertain(std::span<const sample_range> ranges) {
  std::vector<sample_range> out;
  if (uncertain_.empty()) return out;
  for (const auto& range : ranges)
    for (const auto& p : uncertain_.pieces(range.first, range.end()))
      append_range(out, p.first, p.end);
  for (const auto& range : out) {
    settle(range.first, range.end());
    add_doubtful(range.first, range.end());
  }
  return out;
}

void sample_ledger::apply_report(const report& what) {
  piece where{what.range.first, what.range.end(), {}};
  index_state said;
  said.epoch = what.epoch;
  said.peer = what.peer;
  said.group = what.group;
  said.parts_included = what.parts_included;
  said.parts_total = what.parts_total;
  std::vector<sample_range> fresh;
  report_once(what.what, where, said, fresh);
}

void sample_ledger::replace_by(sample_ledger other) {
  other.index_block_ = index_block_;
  // A replica that took over may have issued indices of this one's reservation.
  other.next_ = std::max(next_, other.end_of(index_block_));
  other.limit_ = limit_;
  other.known_index_blocks_ = std::max(known_index_blocks_, other.known_index_blocks_);
  *this = std::move(other);
}

sample_ledger::merge_result sample_ledger::merge(const sample_ledger& other) {
  merge_result out;
  std::map<peer_id, interval_set> revoked;
  interval_set conflicts;
  // State and uncertainty are constant between two neighbouring cuts.
  const auto cut = [](std::vector<std::uint64_t>& at, const auto& pieces) {
    for (const auto& p : pieces) {
      at.push_back(p.first);
      at.push_back(p.end);
    }
  };
  for (const auto& theirs : other.all_.pieces()) {
    std::vector<std::uint64_t> at{theirs.first, theirs.end};
    cut(at, all_.pieces(theirs.first, theirs.end));
    cut(at, uncertain_.pieces(theirs.first, theirs.end));
    cut(at, other.uncertain_.pieces(theirs.first, theirs.end));
    std::sort(at.begin(), at.end());
    at.erase(std::unique(at.begin(), at.end()), at.end());
    for (std::size_t i = 0; i + 1 < at.size(); ++i)
      merge_piece({at[i], at[i + 1], theirs.value},
                  !other.uncertain_.pieces(at[i], at[i + 1]).empty(), conflicts, revoked, out);
  }
  for (const auto& p : conflicts.pieces())
    for (const auto& fresh : doubtful_.missing(p.first, p.end))
      for (const auto& said : other.doubtful_.missing(fresh.first, fresh.end)) {
        append_range(out.doubtful, said.first, said.end);
        add_doubtful(said.first, said.end);
      }
  for (const auto& [peer, had] : other.former_)
    for (const auto& p : had.pieces()) add_former(peer, p.first, p.end);
  for (const auto& said : other.reports_) apply_report(said);
  for (const auto& p : other.doubtful_.pieces()) add_doubtful(p.first, p.end);
  settle_with(other);
  fill_index_block();
  for (const auto& [peer, what] : revoked) {
    loss one{peer, {}};
    for (const auto& p : what.pieces()) append_range(one.ranges, p.first, p.end);
    out.revoked.push_back(std::move(one));
  }
  know_index_blocks(std::max(other.known_index_blocks_, other.index_block_ + 1));
  return out;
}

void sample_ledger::merge_piece(const piece& theirs, bool unchanged_there, interval_set& conflicts,
                                std::map<peer_id, interval_set>& revoked, merge_result& out) {
  const auto& [first, end, said] = theirs;
  const bool unclaimed_there = said.state == kind::leased && said.peer == 0;
  const auto known = all_.pieces(first, end);
  if (known.empty()) {
    // The other primary has the index as unclaimed, and this one has not issued it.
    const bool free = unclaimed_there && first >= next_ && first / index_block_size == index_block_;
    if (free) append_range(skipped_, first, end);
    return set(first, end, free ? index_state{} : said);
  }
  const auto mine = known.front().value;
  if (mine == said) return;
  // A final, uncertain index became final after the divergence. An uncertain index that is not
  // final was leased to no new peer since then. Its lease may have been renewed, claimed, returned
  // or ended.
  const bool unchanged_here = !mine.is_final() && !uncertain_.pieces(first, end).empty();
  unchanged_there = unchanged_there && !said.is_final();
  if (said.is_final()) {
    if (unchanged_here) return set(first, end, said);
    commit_result result;
    commit_piece(known.front(), said, result);
    for (const auto& lost : result.revoked)
      for (const auto& range : lost.ranges) revoked[lost.peer].insert(range.first, range.end());
    for (const auto& range : result.repeated)
      out.repeated.push_back({report::kind::repeated, range, said.epoch, said.peer, said.group,
                              said.parts_included, said.parts_total});
    return;
  }
  const bool theirs_counts = unchanged_here && !unchanged_there;
  // A third primary may have leased the index to a peer that neither of the two knows.
  const auto peers = [](const index_state& state) {
    return state.state == kind::leased && state.peer != 0;
  };
  const bool unclaimed_here = mine.state == kind::leased && mine.peer == 0;
  if ((unchanged_here && unclaimed_there && peers(mine)) ||
      (unchanged_there && unclaimed_here && peers(said)))
    conflicts.insert(first, end);
  if (said.state != kind::leased || unclaimed_there) {
    // The lease of a peer is the safe choice. If the peer returned it at the other primary, the
    // lease expires here.
    if (theirs_counts && (mine.state != kind::leased || mine.peer == 0)) set(first, end, said);
    return;
  }
  const bool same = mine.peer == said.peer;
  if (mine.state == kind::returned ||
      (mine.state == kind::leased && (mine.peer == 0 || (same && mine.expires < said.expires))))
    return set(first, end, said);
  if (same) return;
  // Leases of two peers.
  add_former(theirs_counts ? mine.peer : said.peer, first, end);
  conflicts.insert(first, end);
  if (theirs_counts) set(first, end, said);
}

} // namespace shoal::actors
