#include "netem/nat_rules.hpp"

#include "kernels/base/rng.hpp"

#include <algorithm>

namespace shoal::netem {

namespace {

std::uint64_t unordered_pair(std::uint32_t a, std::uint32_t b) {
  const auto [low, high] = std::minmax(a, b);
  return (std::uint64_t{low} << 32) | high;
}

} // namespace

nat_rules::nat_rules(std::uint64_t seed, double hole_punching,
                     std::function<duration(node, node)> delay)
    : seed_(seed), hole_punching_(hole_punching), delay_(std::move(delay)) {}

void nat_rules::add(node host, std::uint32_t machine, nat_class what) {
  if (hosts_.size() <= host) hosts_.resize(std::size_t{host} + 1);
  hosts_[host] = {what, machine};
}

void nat_rules::add_relay(node host, std::uint64_t budget_bytes) {
  relays_.push_back({host, budget_bytes});
}

void nat_rules::forget(node host) {
  for (auto& r : relays_)
    if (r.host == host) r.alive = false;
  connections_.erase_if([&](std::uint64_t pair, const connection&) {
    return (pair >> 32) == host || (pair & 0xffffffff) == host;
  });
}

bool nat_rules::punched(node a, node b) const {
  if (!can_punch(class_of(a), class_of(b))) return false;
  const auto [low, high] = std::minmax(hosts_[a].machine, hosts_[b].machine);
  return stream(seed_, "netem.hole_punching", low, high).uniform() < hole_punching_;
}

bool nat_rules::relay_left() const noexcept {
  return std::any_of(relays_.begin(), relays_.end(),
                     [](const relay& r) { return r.alive && r.left > 0; });
}

nat_rules::relay* nat_rules::nearest(node from, node to) {
  relay* best = nullptr;
  duration shortest = duration::max();
  for (auto& r : relays_) {
    if (!r.alive || r.left == 0) continue;
    const auto way = delay_(from, r.host) + delay_(r.host, to);
    if (way >= shortest) continue;
    shortest = way;
    best = &r;
  }
  return best;
}

nat_rules::answer nat_rules::ask(node from, node to, std::uint64_t bytes, duration now) {
  using enum answer::kind;
  const auto a = class_of(from), b = class_of(to);
  if (a == nat_class::open && b == nat_class::open) return {};
  const auto pair = unordered_pair(from, to);
  if (auto* known = connections_.find(pair)) {
    if (now < known->ready) return {wait, nobody, known->ready, {}};
    if (known->way != way_in::relayed) return {};
    auto& over = relays_[known->relay];
    if (over.alive && over.left >= bytes) {
      over.left -= bytes;
      counts_.relayed_bytes += bytes;
      return {go, over.host, {}, {}};
    }
    // a relay that refuses one message refuses all later ones, even smaller ones
    if (over.alive) over.left = 0;
    connections_.erase(pair);
  }
  if (b == nat_class::open) {
    connections_[pair] = {way_in::direct, 0, now};
    ++counts_.connections[static_cast<std::size_t>(way_in::direct)];
    return {};
  }
  auto* by = nearest(from, to);
  if (by == nullptr) {
    const auto why =
        relays_.empty() ? unreachable_because::no_relay : unreachable_because::relay_spent;
    ++counts_.unreachable[static_cast<std::size_t>(why)];
    return {never, nobody, {}, why};
  }
  const auto signal = delay_(from, by->host) + delay_(by->host, to);
  connection made{way_in::relayed, static_cast<std::uint32_t>(by - relays_.data()),
                  now + 2 * signal};
  if (a == nat_class::open)
    made = {way_in::reversed, 0, now + signal + delay_(to, from)};
  else if (punched(from, to))
    made = {way_in::punched, 0, now + 3 * signal + delay_(from, to)};
  connections_[pair] = made;
  ++counts_.connections[static_cast<std::size_t>(made.way)];
  return {wait, nobody, made.ready, {}};
}

std::uint64_t nat_rules::address_of(node of, node by) const noexcept {
  if (of >= hosts_.size()) return 1;
  const auto own = std::uint64_t{hosts_[of].machine} + 1;
  switch (hosts_[of].what) {
  case nat_class::outbound_only:
    return 0;
  case nat_class::symmetric:
    return own | (std::uint64_t{by < hosts_.size() ? hosts_[by].machine : by} + 1) << 32;
  default:
    return own;
  }
}

} // namespace shoal::netem
