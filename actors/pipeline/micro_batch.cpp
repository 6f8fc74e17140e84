#include "actors/pipeline/micro_batch.hpp"

#include "kernels/base/check.hpp"

#include <algorithm>
#include <utility>

namespace shoal::actors {

micro_batch::micro_batch(std::uint64_t number, std::uint32_t hops, payload samples,
                         std::uint64_t count)
    : number_(number), count_(count), samples_(std::move(samples)), at_(hops) {
  SHOAL_CHECK(hops >= 2 && count > 0, "a micro-batch has samples, and a last hop");
  at_.front().has_input = true;
  at_.back().has_gradient = true; // the last hop begins from the loss
}

std::vector<micro_batch::task> micro_batch::due() const {
  std::vector<task> out;
  for (std::uint32_t h = 0; h <= last(); ++h) {
    const auto& one = at_[h];
    if (h < last() && one.has_input && !at_[h + 1].has_input && one.forward == progress::none)
      out.push_back({task_kind::forward, h});
    if (one.has_input && one.has_gradient && one.backward == progress::none)
      out.push_back({task_kind::backward, h});
  }
  return out;
}

void micro_batch::sent(task what, peer_id to) {
  auto& one = at_[what.hop];
  const bool forward = what.kind == task_kind::forward;
  (forward ? one.forward : one.backward) = progress::sent;
  (forward ? one.forward_by : one.backward_by) = to;
}

peer_id micro_batch::peer_of(task what) const {
  const auto& one = at_[what.hop];
  return what.kind == task_kind::forward ? one.forward_by : one.backward_by;
}

bool micro_batch::open(task what) const {
  const auto& one = at_[what.hop];
  return (what.kind == task_kind::forward ? one.forward : one.backward) == progress::sent;
}

bool micro_batch::awaits(task what, peer_id by) const {
  return what.hop <= last() && open(what) && peer_of(what) == by;
}

bool micro_batch::answered(task what, peer_id by, payload values) {
  if (!awaits(what, by)) return false;
  if (what.kind == task_kind::forward) {
    at_[what.hop].forward = progress::answered;
    auto& next = at_[what.hop + 1];
    next.has_input = true;
    next.input = std::move(values);
    return true;
  }
  at_[what.hop].backward = progress::answered;
  if (what.hop == 0) return true;
  auto& before = at_[what.hop - 1];
  // A backward pass that is repeated leaves the hops before it as they are.
  if (!std::exchange(before.has_gradient, true)) before.gradient = std::move(values);
  return true;
}

bool micro_batch::counted(std::uint32_t hop, peer_id by) {
  if (hop > last() || at_[hop].backward != progress::answered || at_[hop].backward_by != by)
    return false;
  at_[hop].backward = progress::counted;
  return true;
}

void micro_batch::failed(task what, peer_id by) {
  if (what.hop > last() || peer_of(what) != by) return;
  auto& one = at_[what.hop];
  auto& state = what.kind == task_kind::forward ? one.forward : one.backward;
  if (state == progress::sent || (state == progress::answered && what.kind == task_kind::backward))
    state = progress::none;
}

std::uint32_t micro_batch::lost(peer_id peer) {
  std::uint32_t out = 0;
  for (auto& one : at_) {
    if (one.forward == progress::sent && one.forward_by == peer) one.forward = progress::none;
    if (one.backward == progress::none || one.backward_by != peer) continue;
    if (one.backward == progress::counted) ++out;
    one.backward = progress::none;
  }
  return out;
}

void micro_batch::settle(std::uint32_t hop) {
  SHOAL_CHECK(at_[hop].has_input && at_[hop].has_gradient, "a hop that has counted is settled");
  at_[hop].backward = progress::counted;
}

std::uint32_t micro_batch::counted_hops() const {
  return static_cast<std::uint32_t>(std::count_if(
      at_.begin(), at_.end(), [](const auto& one) { return one.backward == progress::counted; }));
}

} // namespace shoal::actors
