#include "actors/data/sample_ledger.hpp"

#include "actors/data/sample_ranges.hpp"
#include "kernels/base/check.hpp"

#include <algorithm>

namespace shoal::actors {

namespace {

bool is_lease_of(peer_id peer, const index_state& state) {
  return state.state == index_state::kind::leased && (state.peer == peer || state.peer == 0);
}

} // namespace

std::vector<sample_range> sample_ledger::lease(peer_id peer, std::uint32_t count, duration now) {
  std::vector<sample_range> out;
  index_state leased;
  leased.state = kind::leased;
  leased.peer = peer;
  leased.expires = now + lease_time_;
  std::uint64_t wanted = count;
  while (wanted > 0 && !returned_.empty()) {
    const auto lowest = returned_.front();
    const auto end = lowest.first + std::min(wanted, lowest.size());
    set(lowest.first, end, leased);
    append_range(out, lowest.first, end);
    wanted -= end - lowest.first;
  }
  // A peer that asks for more than there is gets the rest.
  const auto limit = std::min(limit_, (index_block_ + 1) * index_block_size);
  while (wanted > 0 && next_ < limit) {
    const auto first = next_;
    auto end = first + std::min(wanted, limit - first);
    const auto known = all_.pieces(first, end);
    // Another primary issued this index.
    if (!known.empty() && known.front().first == first) {
      next_ = known.front().end;
      continue;
    }
    if (!known.empty()) end = known.front().first;
    next_ = end;
    set(first, end, leased);
    append_range(out, first, end);
    wanted -= end - first;
  }
  return out;
}

sample_ledger::renewal sample_ledger::renew(peer_id peer, std::span<const sample_range> ranges,
                                            duration now) {
  renewal out;
  for (const auto& p : owned(peer, ranges, out.unknown)) {
    if (is_lease_of(peer, p.value)) {
      auto longer = p.value;
      longer.peer = peer;
      longer.expires = std::max(longer.expires, now + lease_time_);
      set(p.first, p.end, longer);
      append_range(out.renewed, p.first, p.end);
      if (p.value.peer == 0) append_range(out.claimed, p.first, p.end);
      // Otherwise final, by a round that the peer has not heard of yet.
    } else if (p.value.peer != peer) {
      append_range(out.lost, p.first, p.end);
    }
  }
  index_state leased;
  leased.state = kind::leased;
  leased.peer = peer;
  leased.expires = now + lease_time_;
  for (const auto& range : out.unknown)
    for (const auto& known : possibly_leased_elsewhere(range.first, range.end()))
      for (const auto& p : all_.pieces(known.first, known.end))
        // The other primary leased the index to this peer, so it is not leased again here.
        if (p.value.state == kind::returned) {
          set(p.first, p.end, leased);
          append_range(out.claimed, p.first, p.end);
        }
  if (diverged()) fill_index_block();
  return out;
}

sample_ledger::give_back_result sample_ledger::give_back(peer_id peer,
                                                         std::span<const sample_range> ranges) {
  give_back_result out;
  for (const auto& p : owned(peer, ranges, out.unknown)) {
    if (is_lease_of(peer, p.value)) {
      set(p.first, p.end, {});
      append_range(out.returned, p.first, p.end);
    } else {
      append_range(out.stale, p.first, p.end);
    }
  }
  fill_index_block();
  return out;
}

std::vector<sample_ledger::loss> sample_ledger::expire(duration now) {
  std::map<peer_id, interval_set> taken;
  while (!by_expiry_.empty() && by_expiry_.begin()->first <= now) {
    // A copy, because set() changes the map.
    const auto due = by_expiry_.begin()->second.pieces();
    for (const auto& range : due)
      for (const auto& p : all_.pieces(range.first, range.end)) {
        taken[p.value.peer].insert(p.first, p.end);
        set(p.first, p.end, {});
      }
  }
  std::vector<loss> out;
  for (const auto& [peer, set_of] : taken) {
    loss one{peer, {}};
    for (const auto& p : set_of.pieces()) append_range(one.ranges, p.first, p.end);
    out.push_back(std::move(one));
  }
  return out;
}

sample_ledger::commit_result
sample_ledger::commit(peer_id peer, std::span<const sample_range> ranges, std::uint64_t epoch,
                      group_id group, std::uint32_t parts_included, std::uint32_t parts_total) {
  SHOAL_CHECK(parts_total > 0 && parts_included <= parts_total, "a round of that many parts");
  index_state to;
  to.state = parts_included == 0             ? kind::returned
             : parts_included == parts_total ? kind::committed
                                             : kind::partial;
  to.peer = peer;
  to.epoch = epoch;
  to.group = group;
  to.parts_included = parts_included;
  to.parts_total = parts_total;
  commit_result out;
  for (const auto& p : owned(peer, ranges, out.unknown)) commit_piece(p, to, out);
  // The other primary may have leased indices to it that this one did not.
  for (const auto& range : std::exchange(out.unknown, {})) {
    auto at = range.first;
    for (const auto& known : possibly_leased_elsewhere(range.first, range.end()))
      for (const auto& p : all_.pieces(known.first, known.end)) {
        if (at < p.first) append_range(out.unknown, at, p.first);
        at = p.end;
        commit_piece(p, to, out);
      }
    if (at < range.end()) append_range(out.unknown, at, range.end());
  }
  if (diverged()) fill_index_block();
  return out;
}

void sample_ledger::commit_piece(const piece& from, const index_state& to, commit_result& out) {
  const auto& now = from.value;
  const bool is_final = now.is_final();
  const bool used = to.state != kind::returned;

  if (is_final && now.peer == to.peer && now.group == to.group && now.epoch == to.epoch) {
    if (now.parts_included == to.parts_included && now.parts_total == to.parts_total)
      append_range(out.already, from.first, from.end);
    else
      report_once(report::kind::disputed, from, to, out.disputed);
    return;
  }
  if (!used) {
    // Only the lease of this peer ends. A later state of the index stays.
    if (is_lease_of(to.peer, now)) {
      set(from.first, from.end, {});
      append_range(out.returned, from.first, from.end);
    } else {
      append_range(out.already, from.first, from.end);
    }
    return;
  }
  if (is_final) {
    report_once(report::kind::repeated, from, to, out.repeated);
    return;
  }
  if (now.state == kind::leased && !is_lease_of(to.peer, now)) {
    report_once(report::kind::repeated, from, to, out.repeated);
    if (out.revoked.empty() || out.revoked.back().peer != now.peer)
      out.revoked.push_back({now.peer, {}});
    append_range(out.revoked.back().ranges, from.first, from.end);
  }
  set(from.first, from.end, to);
  append_range(to.state == kind::committed ? out.committed : out.partial, from.first, from.end);
}

void sample_ledger::report_once(report::kind what, const piece& where, const index_state& said,
                                std::vector<sample_range>& out) {
  // Another primary leased the indices to the peer, which may report them again.
  former_[said.peer].insert(where.first, where.end);
  auto& known = reported_[{what, said.group, said.epoch, said.peer}];
  for (const auto& fresh : known.missing(where.first, where.end)) {
    append_range(out, fresh.first, fresh.end);
    reported_counts_[static_cast<std::size_t>(what)] += fresh.size();
    std::vector<sample_range> ranges;
    append_range(ranges, fresh.first, fresh.end);
    for (const auto& range : ranges)
      if (reports_.size() < max_reports) {
        reports_.push_back({what, range, said.epoch, said.peer, said.group, said.parts_included,
                            said.parts_total});
        if (recording_) changes_.reports.push_back(reports_.back());
      }
  }
  if (reports_.size() < max_reports)
    known.insert(where.first, where.end);
  else if (known.empty())
    reported_.erase({what, said.group, said.epoch, said.peer});
}

std::uint64_t sample_ledger::leased_by(peer_id peer) const {
  const auto at = leased_.find(peer);
  return at == leased_.end() ? 0 : at->second;
}

std::vector<sample_ledger::row> sample_ledger::snapshot() const {
  std::vector<row> out;
  out.reserve(all_.piece_count());
  for (const auto& p : all_.pieces()) out.push_back({p.first, p.size(), p.value});
  return out;
}

std::vector<sample_ledger::piece> sample_ledger::owned(peer_id peer,
                                                       std::span<const sample_range> ranges,
                                                       std::vector<sample_range>& unknown) const {
  std::vector<piece> out;
  interval_set once;
  // An unclaimed lease may have been this peer's.
  for (const auto whom : {peer, peer_id{0}})
    if (const auto former = former_.find(whom); former != former_.end())
      for (const auto& range : ranges)
        for (const auto& p : former->second.pieces(range.first, range.end()))
          once.insert(p.first, p.end);
  index_state unclaimed;
  unclaimed.state = kind::leased;
  for (const auto& range : ranges) {
    auto at = range.first;
    const auto skip = [&](std::uint64_t to) {
      if (at < to) append_range(unknown, at, to);
      at = std::max(at, to);
    };
    const auto add = [&](std::uint64_t first, std::uint64_t end, const index_state& state) {
      skip(first);
      out.push_back({first, end, state});
      at = end;
    };
    auto known = range.first;
    const auto gap = [&](std::uint64_t to) {
      if (known < to && claimable(known, to)) add(known, to, unclaimed);
    };
    for (const auto& p : all_.pieces(range.first, range.end())) {
      gap(p.first);
      known = p.end;
      if (is_lease_of(peer, p.value) || (p.value.peer == peer && p.value.state != kind::returned))
        add(p.first, p.end, p.value);
      else
        for (const auto& had : once.pieces(p.first, p.end)) add(had.first, had.end, p.value);
    }
    gap(range.end());
    skip(range.end());
  }
  return out;
}

bool sample_ledger::claimable(std::uint64_t first, std::uint64_t end) const noexcept {
  const auto index_block = first / index_block_size;
  // Reserved and not issued here: the other primary may have issued it.
  if (index_block == index_block_) return diverged() && first >= next_ && end <= limit_;
  // A replica may have joined and taken over on the other side of a cut, unknown here.
  return (index_block < known_index_blocks_ || diverged()) &&
         (end - 1) / index_block_size == index_block;
}

void sample_ledger::set(std::uint64_t first, std::uint64_t end, const index_state& to) {
  for (const auto& p : all_.pieces(first, end)) {
    const auto& from = p.value;
    counts_[static_cast<std::size_t>(from.state)] -= p.size();
    if (from.state == kind::returned) returned_.erase(p.first, p.end);
    if (from.state != kind::leased) continue;
    const auto due = by_expiry_.find(from.expires);
    due->second.erase(p.first, p.end);
    if (due->second.empty()) by_expiry_.erase(due);
    const auto held = leased_.find(from.peer);
    held->second -= p.size();
    if (held->second == 0) leased_.erase(held);
    if (from.peer != to.peer || to.state == kind::returned)
      former_[from.peer].insert(p.first, p.end);
  }
  all_.assign(first, end, to);
  counts_[static_cast<std::size_t>(to.state)] += end - first;
  if (to.state == kind::returned && !recording_) returned_.insert(first, end);
  if (recording_) changes_.states.push_back({first, end, to});
  if (to.state == kind::leased) {
    by_expiry_[to.expires].insert(first, end);
    leased_[to.peer] += end - first;
  }
}

} // namespace shoal::actors
