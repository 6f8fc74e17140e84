#include "actors/data/sample_ledger.hpp"

#include "actors/data/sample_ranges.hpp"
#include "kernels/base/check.hpp"

#include <algorithm>

namespace shoal::actors {

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
  if (wanted > 0) {
    const auto first = high_water_;
    SHOAL_CHECK(first + wanted > first, "2^64 samples have been issued");
    high_water_ = first + wanted;
    set(first, high_water_, leased);
    append_range(out, first, high_water_);
  }
  return out;
}

sample_ledger::renewal sample_ledger::renew(peer_id peer, std::span<const sample_range> ranges,
                                            duration now) {
  renewal out;
  for (const auto& p : owned(peer, ranges, out.unknown)) {
    if (p.value.peer == peer && p.value.state == kind::leased) {
      auto longer = p.value;
      longer.expires = std::max(longer.expires, now + lease_time_);
      set(p.first, p.end, longer);
      append_range(out.renewed, p.first, p.end);
    } else if (p.value.peer != peer) { // else final, by a round whose end the peer has not seen yet
      append_range(out.lost, p.first, p.end);
    }
  }
  return out;
}

sample_ledger::give_back_result sample_ledger::give_back(peer_id peer,
                                                         std::span<const sample_range> ranges) {
  give_back_result out;
  for (const auto& p : owned(peer, ranges, out.unknown)) {
    if (p.value.peer == peer && p.value.state == kind::leased) {
      set(p.first, p.end, {});
      append_range(out.returned, p.first, p.end);
    } else {
      append_range(out.stale, p.first, p.end);
    }
  }
  return out;
}

std::vector<sample_ledger::loss> sample_ledger::expire(duration now) {
  std::map<peer_id, interval_set> taken;
  while (!by_expiry_.empty() && by_expiry_.begin()->first <= now) {
    const auto due = by_expiry_.begin()->second.pieces(); // set() changes the map
    for (const auto& range : due)
      for (const auto& p : all_.pieces(range.first, range.end)) {
        taken[p.value.peer].insert(p.first, p.end);
        set(p.first, p.end, {});
      }
  }
  std::vector<loss> out;
  for (const auto& [peer, set_of] : taken) {
    loss one{peer, {}};
    for (const auto& p : set_of.pieces())
      append_range(one.ranges, p.first, p.end);
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
  for (const auto& p : owned(peer, ranges, out.unknown))
    commit_piece(p, to, out);
  return out;
}

void sample_ledger::commit_piece(const piece& from, const index_state& to, commit_result& out) {
  const auto& now = from.value;
  const bool is_final = now.state == kind::committed || now.state == kind::partial;
  const bool used = to.state != kind::returned;

  if (is_final && now.peer == to.peer && now.group == to.group && now.epoch == to.epoch) {
    if (now.parts_included == to.parts_included && now.parts_total == to.parts_total)
      append_range(out.already, from.first, from.end);
    else
      report_once(report::kind::disputed, from, to, out.disputed);
    return;
  }
  if (!used) {
    // Only the lease in question ends; what others made of the index since is not our business.
    if (now.state == kind::leased && now.peer == to.peer) {
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
  if (now.state == kind::leased && now.peer != to.peer) {
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
  auto& known = reported_[{what, said.group, said.epoch, said.peer}];
  for (const auto& fresh : known.missing(where.first, where.end)) {
    append_range(out, fresh.first, fresh.end);
    reported_counts_[static_cast<std::size_t>(what)] += fresh.size();
    std::vector<sample_range> ranges;
    append_range(ranges, fresh.first, fresh.end);
    for (const auto& range : ranges)
      if (reports_.size() < max_reports)
        reports_.push_back({what, range, said.epoch, said.peer, said.group, said.parts_included,
                            said.parts_total});
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
  for (const auto& p : all_.pieces())
    out.push_back({p.first, p.size(), p.value});
  return out;
}

std::vector<sample_ledger::piece> sample_ledger::owned(peer_id peer,
                                                       std::span<const sample_range> ranges,
                                                       std::vector<sample_range>& unknown) const {
  std::vector<piece> out;
  const auto former = former_.find(peer);
  for (const auto& range : ranges) {
    auto at = range.first;
    auto add = [&](std::uint64_t first, std::uint64_t end, const index_state& state) {
      if (at < first)
        append_range(unknown, at, first);
      out.push_back({first, end, state});
      at = end;
    };
    for (const auto& p : all_.pieces(range.first, range.end())) {
      if (p.value.peer == peer && p.value.state != kind::returned)
        add(p.first, p.end, p.value);
      else if (former != former_.end())
        for (const auto& once : former->second.pieces(p.first, p.end))
          add(once.first, once.end, p.value);
    }
    if (at < range.end())
      append_range(unknown, at, range.end());
  }
  return out;
}

void sample_ledger::set(std::uint64_t first, std::uint64_t end, const index_state& to) {
  for (const auto& p : all_.pieces(first, end)) {
    const auto& from = p.value;
    counts_[static_cast<std::size_t>(from.state)] -= p.size();
    if (from.state == kind::returned)
      returned_.erase(p.first, p.end);
    if (from.state != kind::leased)
      continue;
    const auto due = by_expiry_.find(from.expires);
    due->second.erase(p.first, p.end);
    if (due->second.empty())
      by_expiry_.erase(due);
    const auto held = leased_.find(from.peer);
    held->second -= p.size();
    if (held->second == 0)
      leased_.erase(held);
    if (from.peer != to.peer || to.state == kind::returned)
      former_[from.peer].insert(p.first, p.end);
  }
  all_.assign(first, end, to);
  counts_[static_cast<std::size_t>(to.state)] += end - first;
  if (to.state == kind::returned)
    returned_.insert(first, end);
  if (to.state == kind::leased) {
    by_expiry_[to.expires].insert(first, end);
    leased_[to.peer] += end - first;
  }
}

} // namespace shoal::actors
