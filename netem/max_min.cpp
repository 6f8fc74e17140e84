#include "netem/max_min.hpp"

#include "kernels/base/check.hpp"

#include <algorithm>
#include <cmath>

namespace shoal::netem {

namespace {

constexpr double tolerance = 1e-12;

// True if a is above the level by more than rounding.
bool above(double a, double level) {
  return a > level * (1 + tolerance);
}

// Orders a heap with the lowest level in front.
constexpr auto later = [](const auto& a, const auto& b) {
  if (a.level != b.level) return a.level > b.level;
  return a.what != b.what ? a.what > b.what : a.capped > b.capped;
};

} // namespace

// --- The graph ---------------------------------------------------------------------------------

link_id max_min::add_link(double capacity) {
  SHOAL_CHECK(std::isfinite(capacity) && capacity >= 0, "a link needs a finite capacity");
  links_.emplace_back().capacity = capacity;
  return link_id{static_cast<std::uint32_t>(links_.size() - 1)};
}

void max_min::set_capacity(link_id link, double capacity) {
  SHOAL_CHECK(std::isfinite(capacity) && capacity >= 0, "a link needs a finite capacity");
  const auto l = static_cast<std::uint32_t>(link);
  if (links_.at(l).capacity == capacity) return;
  links_[l].capacity = capacity;
  seed(l);
}

max_min::flow_index max_min::add_flow(std::span<const link_use> path, double cap, double weight) {
  SHOAL_CHECK(cap >= 0 && weight > 0 && std::isfinite(weight), "a cap or weight makes no sense");
  SHOAL_CHECK(!path.empty() || std::isfinite(cap), "a flow without links needs a cap");
  SHOAL_CHECK(path.size() < 64, "a path of more than 63 links");
  flow_index f;
  if (free_flows_.empty()) {
    f = static_cast<flow_index>(flows_.size());
    flows_.emplace_back();
  } else {
    f = free_flows_.back();
    free_flows_.pop_back();
  }
  auto& record = flows_[f];
  const bool seeded = record.seeded; // an index may be removed and reused between two solves
  record = {};
  record.weight = weight;
  record.cap_level = cap / weight;
  record.hop_count = static_cast<std::uint16_t>(path.size());
  record.bottleneck = static_cast<std::uint32_t>(no_link);
  record.now = state::resting;
  record.seeded = true;
  if (free_hops_.size() <= path.size()) free_hops_.resize(path.size() + 1);
  auto& free_hops = free_hops_[path.size()];
  if (free_hops.empty()) {
    record.first_hop = static_cast<std::uint32_t>(hops_.size());
    hops_.resize(hops_.size() + path.size());
  } else {
    record.first_hop = free_hops.back();
    free_hops.pop_back();
  }
  auto place = record.first_hop;
  for (const auto& use : path) {
    const auto l = static_cast<std::uint32_t>(use.link);
    SHOAL_CHECK(l < links_.size(), "a flow over a link that does not exist");
    SHOAL_CHECK(use.amount > 0 && std::isfinite(use.amount), "a flow must take some of a link");
    auto& uses = links_[l].uses;
    SHOAL_CHECK(uses.empty() || uses.back().flow != f, "a flow crosses a link twice");
    hops_[place] = {l, static_cast<std::uint32_t>(uses.size()), use.amount * weight};
    uses.push_back({f, place});
    ++place;
  }
  if (!seeded) seed_flows_.push_back(f);
  return f;
}

void max_min::set_cap(flow_index f, double cap) {
  SHOAL_CHECK(cap >= 0, "a negative cap");
  auto& record = flows_.at(f);
  SHOAL_CHECK(record.now == state::resting, "no such flow");
  SHOAL_CHECK(record.hop_count > 0 || std::isfinite(cap), "a flow without links needs a cap");
  const double cap_level = cap / record.weight;
  if (record.cap_level == cap_level) return;
  // A cap that does not limit the flow may move, as long as it stays above the rate.
  const bool held_by_link = record.bottleneck != static_cast<std::uint32_t>(no_link);
  record.cap_level = cap_level;
  if (record.seeded || (held_by_link && cap_level >= record.level)) return;
  record.seeded = true;
  seed_flows_.push_back(f);
}

void max_min::remove_flow(flow_index f) {
  auto& record = flows_.at(f);
  SHOAL_CHECK(record.now == state::resting, "no such flow");
  for (const auto& h : hops(record)) {
    auto& link = links_[h.link];
    link.used -= h.weight * record.level;
    ++link.drift;
    const auto moved = link.uses.back();
    link.uses[h.place] = moved;
    hops_[moved.hop].place = h.place;
    link.uses.pop_back();
    if (link.uses.empty()) link.used = 0;
    if (link.level < unlimited) seed(h.link); // a link that held no flow back still holds none back
  }
  free_hops_[record.hop_count].push_back(record.first_hop);
  record.now = state::free;
  free_flows_.push_back(f);
}

void max_min::seed(std::uint32_t link) {
  if (links_[link].seeded) return;
  links_[link].seeded = true;
  seed_links_.push_back(link);
}

void max_min::sum_afresh(link_record& link) {
  double used = 0;
  for (const auto& use : link.uses) used += hops_[use.hop].weight * flows_[use.flow].level;
  link.used = used;
  link.drift = 0;
}

// --- The filling -------------------------------------------------------------------------------

std::span<const max_min::flow_index> max_min::solve() {
  changed_.clear();
  for (const auto l : seed_links_) {
    links_[l].seeded = false;
    touch(l);
  }
  seed_links_.clear();
  for (const auto f : seed_flows_) {
    flows_[f].seeded = false;
    if (flows_[f].now == state::resting) raise(f, 0, false);
  }
  seed_flows_.clear();
  for (const auto l : touched_) schedule(l, 0);

  while (!events_.empty()) {
    const auto e = events_.front();
    std::pop_heap(events_.begin(), events_.end(), later);
    events_.pop_back();
    if (e.capped != no_flow) {
      if (flows_[e.capped].now == state::rising)
        settle_rising(e.capped, flows_[e.capped].cap_level, static_cast<std::uint32_t>(no_link));
    } else if (!links_[e.what].closed && links_[e.what].next_event == e.level) {
      meet(e.what, e.level);
    }
  }
  finish();
  return changed_;
}

void max_min::push(event e) {
  events_.push_back(e);
  std::push_heap(events_.begin(), events_.end(), later);
}

// Must run before any flow on the link changes its level.
void max_min::touch(std::uint32_t l) {
  auto& link = links_[l];
  if (link.touched) return;
  link.touched = true;
  touched_.push_back(l);
  if (link.drift * 4 > link.uses.size()) sum_afresh(link);
  ++link.drift;
  link.fixed = link.used;
  link.rising_weight = 0;
  link.rising_count = 0;
  link.next_event = unlimited;
  link.new_level = unlimited;
  link.opened = link.closed = false;
  link.passed = link.level == unlimited;
}

// A level below which the link cannot fill up. The level is exact once no resting flow is above it.
double max_min::fill_estimate(const link_record& link, double water) const {
  if (link.rising_count == 0) return above(link.fixed, link.capacity) ? water : unlimited;
  return std::max(water, (link.capacity - link.fixed) / link.rising_weight);
}

// An entry that is too early is harmless: meet() checks again.
void max_min::schedule(std::uint32_t l, double water) {
  auto& link = links_[l];
  if (link.closed) return;
  double next = fill_estimate(link, water);
  if (!link.passed) next = std::min(next, std::max(water, link.level));
  if (next >= link.next_event) return;
  link.next_event = next;
  push({next, l, no_flow});
}

void max_min::meet(std::uint32_t l, double water) {
  auto& link = links_[l];
  link.next_event = 0; // keeps schedule() away during the loop
  for (;;) {
    if (link.opened) fold(link, water);
    const double estimate = fill_estimate(link, water);
    if (!link.passed && !above(link.level, estimate)) {
      // No flow here rests above the last fill level, so at that level the estimate is exact.
      if (above(link.level, water)) break;
      if (!above(estimate, link.level)) return close(l, link.level);
      pass(l, water);
    } else if (estimate > water) {
      break;
    } else if (!link.opened) {
      open(link, water);
    } else {
      return close(l, water);
    }
  }
  link.next_event = unlimited;
  schedule(l, water);
}

// The water is above the link's last fill level, so the flows that it held back may rise.
void max_min::pass(std::uint32_t l, double water) {
  links_[l].passed = true;
  for (const auto& use : links_[l].uses) {
    const auto& f = flows_[use.flow];
    if (f.now == state::resting && f.bottleneck == l) raise(use.flow, water, true);
  }
  auto& link = links_[l]; // summed again, since the differences above leave rounding behind
  double fixed = 0;
  for (const auto& use : link.uses) {
    const auto& f = flows_[use.flow];
    const bool high = link.opened && f.now == state::resting && f.level > link.fold_level;
    if (f.now != state::rising && !high) fixed += hops_[use.hop].weight * f.level;
  }
  link.fixed = fixed;
}

// Subtracts the use of a flow that no longer rests from a touched link.
void max_min::leave_rest(link_record& link, const flow_record& f, double weight) {
  if (link.opened && f.level > link.fold_level) {
    link.rising_weight -= weight;
    if (--link.rising_count == 0) link.rising_weight = 0;
  } else {
    link.fixed -= weight * f.level;
  }
}

void max_min::raise(flow_index f, double water, bool schedule_links) {
  auto& record = flows_[f];
  record.now = state::rising;
  moved_.push_back({f, record.level});
  for (const auto& h : hops(record)) {
    touch(h.link);
    auto& link = links_[h.link];
    leave_rest(link, record, h.weight);
    link.rising_weight += h.weight;
    ++link.rising_count;
    if (schedule_links) schedule(h.link, water);
  }
  if (record.cap_level < unlimited)
    push({std::max(water, record.cap_level), static_cast<std::uint32_t>(no_link), f});
}

// Treats resting flows above the water as rising with it until the water reaches their level.
void max_min::open(link_record& link, double water) {
  if (high_lists_used_ == high_lists_.size()) high_lists_.emplace_back();
  link.high_list = high_lists_used_++;
  auto& list = high_lists_[link.high_list];
  list.flows.clear();
  list.folded = 0;
  link.fixed = 0;
  for (const auto& use : link.uses) {
    const auto& f = flows_[use.flow];
    const double weight = hops_[use.hop].weight;
    if (f.now != state::resting || f.level <= water) {
      if (f.now != state::rising) link.fixed += weight * f.level;
      continue;
    }
    link.rising_weight += weight;
    ++link.rising_count;
    list.flows.push_back({f.level, weight, use.flow});
  }
  std::sort(list.flows.begin(), list.flows.end(), [](const high_flow& a, const high_flow& b) {
    return a.level != b.level ? a.level < b.level : a.flow < b.flow;
  });
  link.opened = true;
  link.fold_level = water;
}

// Resting flows that the water has reached keep their level.
void max_min::fold(link_record& link, double water) {
  auto& list = high_lists_[link.high_list];
  for (; list.folded < list.flows.size() && list.flows[list.folded].level <= water; ++list.folded) {
    const auto& high = list.flows[list.folded];
    if (flows_[high.flow].now != state::resting) continue;
    link.fixed += high.weight * high.level;
    link.rising_weight -= high.weight;
    if (--link.rising_count == 0) link.rising_weight = 0;
  }
  link.fold_level = water;
}

void max_min::close(std::uint32_t l, double level) {
  auto& link = links_[l];
  link.closed = true;
  link.new_level = level;
  double used = 0;
  for (const auto& use : link.uses) {
    auto& f = flows_[use.flow];
    if (f.now == state::rising) {
      settle_rising(use.flow, level, l);
    } else if (f.now == state::resting && above(f.level, level)) {
      lower(use.flow, level, l);
    } else if (f.now == state::resting && f.bottleneck != l && !above(level, f.level)) {
      // This bottleneck is as good as the other one, which may be passed soon.
      f.bottleneck = l;
    }
    used += hops_[use.hop].weight * f.level;
  }
  link.fixed = used;
  link.drift = 0;
}

void max_min::settle_rising(flow_index f, double level, std::uint32_t bottleneck) {
  auto& record = flows_[f];
  for (const auto& h : hops(record)) {
    auto& link = links_[h.link];
    if (link.closed) continue;
    link.rising_weight -= h.weight;
    if (--link.rising_count == 0) link.rising_weight = 0;
    link.fixed += h.weight * level;
  }
  record.level = level;
  record.bottleneck = bottleneck;
  record.now = state::settled;
}

void max_min::lower(flow_index f, double level, std::uint32_t bottleneck) {
  auto& record = flows_[f];
  moved_.push_back({f, record.level});
  record.now = state::settled;
  for (const auto& h : hops(record)) {
    touch(h.link);
    auto& link = links_[h.link];
    if (link.closed) continue;
    leave_rest(link, record, h.weight);
    link.fixed += h.weight * level;
  }
  record.level = level;
  record.bottleneck = bottleneck;
  for (const auto& h : hops(record)) schedule(h.link, level);
}

void max_min::finish() {
  for (const auto l : touched_) {
    auto& link = links_[l];
    if (link.opened && !link.closed) {
      for (const auto& high : high_lists_[link.high_list].flows)
        if (high.level > link.fold_level && flows_[high.flow].now == state::resting)
          link.fixed += high.weight * high.level;
    }
    link.used = link.uses.empty() ? 0 : link.fixed;
    link.level = link.new_level;
    link.touched = false;
  }
  touched_.clear();
  high_lists_used_ = 0;
  for (const auto& [f, level] : moved_) {
    auto& record = flows_[f];
    SHOAL_CHECK(record.now == state::settled, "a flow rose without end");
    record.now = state::resting;
    if (record.level != level) changed_.push_back(f);
  }
  refilled_ += moved_.size();
  moved_.clear();
}

} // namespace shoal::netem
