#include "actors/data/ledger_states.hpp"

#include <algorithm>
#include <limits>

namespace shoal::actors {

namespace {

/// The least number of pieces in a stretch. Pieces that are not final separate stretches.
constexpr std::size_t least_pieces = 64;

/// The position of `what` in `in`. Appends `what` if it is not there. The search begins at the
/// latest entry.
template <class T, class Same>
std::size_t place_of(std::vector<T>& in, const T& what, Same same) {
  for (auto i = in.size(); i-- > 0;)
    if (same(in[i], what)) return i;
  in.push_back(what);
  return in.size() - 1;
}

} // namespace

void ledger_states::assign(std::uint64_t first, std::uint64_t end, const index_state& to) {
  if (first >= end) return;
  for (auto at = stretch_from(first); at != packed_.end() && at->second.first < end;) {
    std::vector<piece> all;
    unpack(at->second, at->second.first, at->second.end, all);
    packed_pieces_ -= at->second.pieces.size();
    at = packed_.erase(at);
    for (const auto& p : all) open_.assign(p.first, p.end, p.value);
  }
  open_.assign(first, end, to);
  if (open_.piece_count() >= look_at_) pack();
}

std::vector<ledger_states::piece> ledger_states::pieces(std::uint64_t first,
                                                        std::uint64_t end) const {
  auto at = stretch_from(first);
  if (at == packed_.end() || at->second.first >= end) return open_.pieces(first, end);
  std::vector<piece> out;
  for (; at != packed_.end() && at->second.first < end; ++at) {
    if (first < at->second.first) {
      const auto before = open_.pieces(first, at->second.first);
      out.insert(out.end(), before.begin(), before.end());
    }
    unpack(at->second, std::max(first, at->second.first), std::min(end, at->second.end), out);
    first = at->second.end;
  }
  if (first < end) {
    const auto rest = open_.pieces(first, end);
    out.insert(out.end(), rest.begin(), rest.end());
  }
  return out;
}

std::vector<ledger_states::piece> ledger_states::pieces() const {
  return pieces(0, std::numeric_limits<std::uint64_t>::max());
}

std::uint64_t ledger_states::end() const {
  const auto open = open_.empty() ? 0 : open_.back().end;
  return std::max(open, packed_.empty() ? 0 : packed_.rbegin()->second.end);
}

/// The first stretch that ends after `index`.
ledger_states::stretches::const_iterator ledger_states::stretch_from(std::uint64_t index) const {
  const auto after = packed_.upper_bound(index);
  if (after == packed_.begin()) return after;
  const auto before = std::prev(after);
  return before->second.end > index ? before : after;
}

void ledger_states::unpack(const stretch& from, std::uint64_t first, std::uint64_t end,
                           std::vector<piece>& into) {
  auto at = from.first;
  for (const auto& p : from.pieces) {
    const auto begin = at;
    at += p.count;
    if (at <= first) continue;
    if (begin >= end) return;
    const auto& of = from.rounds[p.round];
    index_state state;
    state.state = p.parts_included == of.parts_total ? index_state::kind::committed
                                                     : index_state::kind::partial;
    state.peer = from.peers[p.peer];
    state.epoch = of.epoch;
    state.group = of.group;
    state.parts_included = p.parts_included;
    state.parts_total = of.parts_total;
    into.push_back({std::max(begin, first), std::min(at, end), state});
  }
}

/// Packs runs of final pieces without gaps. Other pieces stay open until as many new ones have been
/// added.
void ledger_states::pack() {
  std::vector<piece> run;
  const auto done = [&] {
    if (run.size() >= least_pieces) pack(run);
    run.clear();
  };
  for (const auto& p : open_.pieces()) {
    const bool fits = p.value.is_final() && p.value.expires == duration{} &&
                      p.size() <= std::numeric_limits<std::uint32_t>::max() &&
                      (p.value.state == index_state::kind::committed) ==
                          (p.value.parts_included == p.value.parts_total);
    if (!fits || (!run.empty() && run.back().end != p.first) || run.size() == 2 * stretch_pieces)
      done();
    if (fits) run.push_back(p);
  }
  done();
  look_at_ = open_.piece_count() + 4 * stretch_pieces;
}

void ledger_states::pack(const std::vector<piece>& run) {
  stretch into;
  into.first = run.front().first;
  into.end = run.back().end;
  into.pieces.reserve(run.size());
  for (const auto& p : run) {
    const auto of = place_of(into.rounds, {p.value.epoch, p.value.group, p.value.parts_total},
                             [](const round& a, const round& b) {
                               return a.group == b.group && a.epoch == b.epoch &&
                                      a.parts_total == b.parts_total;
                             });
    const auto who =
        place_of(into.peers, p.value.peer, [](peer_id a, peer_id b) { return a == b; });
    into.pieces.push_back({static_cast<std::uint32_t>(p.size()), static_cast<std::uint16_t>(of),
                           static_cast<std::uint16_t>(who), p.value.parts_included});
  }
  into.rounds.shrink_to_fit();
  into.peers.shrink_to_fit();
  open_.erase(into.first, into.end);
  packed_pieces_ += into.pieces.size();
  packed_.emplace(into.first, std::move(into));
}

} // namespace shoal::actors
