#include "actors/pipeline/stage_wiring.hpp"

#include "kernels/base/check.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>

namespace shoal::actors {

namespace {

constexpr double least_seconds = 1e-9; // no measured task is faster

} // namespace

std::vector<stage_wiring::known>::const_iterator stage_wiring::place_of(peer_id peer) const {
  return std::lower_bound(peers_.begin(), peers_.end(), peer,
                          [](const known& one, peer_id id) { return one.peer < id; });
}

const stage_wiring::entry* stage_wiring::find(peer_id peer) const {
  const auto at = place_of(peer);
  return at != peers_.end() && at->peer == peer ? &at->of : nullptr;
}

void stage_wiring::join(peer_id peer) {
  if (const auto at = place_of(peer); at == peers_.end() || at->peer != peer)
    peers_.insert(at, {peer, {now_}});
}

void stage_wiring::leave(peer_id peer) {
  if (const auto at = place_of(peer); at != peers_.end() && at->peer == peer) peers_.erase(at);
}

void stage_wiring::measured(peer_id peer, double seconds, double size) {
  SHOAL_CHECK(size > 0, "a task has a size");
  const auto at = place_of(peer);
  if (at == peers_.end() || at->peer != peer) return;
  auto& one = peers_[static_cast<std::size_t>(at - peers_.begin())].of;
  one.mean += smoothing * (std::max(seconds, least_seconds) / size - one.mean);
  one.weight += smoothing * (1 - one.weight);
}

double stage_wiring::most_rate() const {
  std::vector<double> rates;
  for (const auto& [peer, one] : peers_)
    if (one.weight > 0) rates.push_back(one.weight / one.mean);
  if (rates.empty()) return 1;
  const auto middle = rates.begin() + static_cast<std::ptrdiff_t>((rates.size() - 1) / 2);
  std::nth_element(rates.begin(), middle, rates.end());
  return most_lead * *middle;
}

double stage_wiring::mean_rate() const {
  const double most = most_rate();
  double sum = 0;
  std::size_t count = 0;
  for (const auto& [peer, one] : peers_)
    if (one.weight > 0) {
      sum += std::min(most, one.weight / one.mean);
      ++count;
    }
  return count == 0 ? 1 : sum / static_cast<double>(count);
}

double stage_wiring::rate(peer_id peer) const {
  const auto* found = find(peer);
  return found == nullptr || found->weight <= 0
             ? mean_rate()
             : std::min(most_rate(), found->weight / found->mean);
}

std::optional<peer_id> stage_wiring::choose(double size, const std::set<peer_id>& without) {
  SHOAL_CHECK(size > 0, "a task has a size");
  const double unknown = mean_rate(), most = most_rate();
  const auto rate_of = [&](const entry& one) {
    return one.weight > 0 ? std::min(most, one.weight / one.mean) : unknown;
  };
  constexpr double never = std::numeric_limits<double>::infinity();
  largest_ = std::max(largest_, size);
  double earliest = never, rates = 0;
  for (const auto& [peer, one] : peers_) {
    if (!without.empty() && without.contains(peer)) continue;
    earliest = std::min(earliest, one.start);
    rates += rate_of(one);
  }
  if (rates == 0) return std::nullopt;
  // Rates that change, and peers that leave, may leave all starts in the future. The margin is for
  // sums that are rounded.
  now_ = std::max(now_, earliest);
  const double margin = 1e-9 * size / rates;
  entry* out = nullptr;
  std::optional<peer_id> chosen;
  double least = never;
  for (auto& [peer, one] : peers_) {
    if (one.start > now_ + margin || (!without.empty() && without.contains(peer))) continue;
    const double rate = rate_of(one);
    // A peer that got nothing for a while catches up on one task, and not on all.
    const double finish = std::max(one.start, now_ - largest_ / rate) + size / rate;
    if (finish >= least - margin) continue;
    least = finish;
    out = &one;
    chosen = peer;
  }
  out->start = least;
  now_ += size / rates;
  return chosen;
}

} // namespace shoal::actors
