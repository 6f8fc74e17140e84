// Max-min fair rates of flows over links, updated incrementally: only rates that a change can
// affect are computed again.
//
// A flow f has a weight w[f], a cap, and uses[f, l] units of link l for each unit of its rate. The
// rate of f is w[f] * level[f], and `level` is the max-min fair point of
//   sum over f of uses[f, l] * w[f] * level[f] <= capacity[l],   w[f] * level[f] <= cap[f].
// This point is the only feasible one at which every flow has a bottleneck. A bottleneck is the
// flow's cap, or a full link on which no flow has a higher level. Source: Bertsekas and Gallager,
// "Data Networks", section 6.5.2.
//
// Steps: progressive filling raises one water level from 0. A link that fills up at level s freezes
// its flows at s. solve() repeats this filling only where it differs from the last one:
// 1. Changed links and new flows are touched. A touched link sums the use of its resting flows,
//    which are not known to change, and knows its rising flows.
// 2. Events are taken from a heap in rising order of level:
//    - A touched link passes its last fill level and still has room. The flows that it froze rise
//      again, and their other links are touched.
//    - A touched link fills up. Its rising flows freeze, its resting flows above this level are
//      lowered to it, and the other links of the lowered flows are touched.
//    - A rising flow meets its cap.
// 3. Without further events, every flow has a bottleneck again.
// Flows frozen below the first change are never visited. Nor are flows elsewhere in the same
// component whose links keep their fill level.
//
// Error: levels closer than 1e-12 (relative) count as equal, so rounding does not spread. Levels
// are compared with freshly computed ones, so rounding does not add up over changes.
// Complexity: solve() is O((F + D) log (F + D)). F flows change, or share a link whose fill level
// changes; D links are touched. add, remove and set are O(path).
// Determinism: the same calls in the same order give the same bits.
// Thread safety: none.
#pragma once

#include "netem/ids.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace shoal::netem {

constexpr double unlimited = std::numeric_limits<double>::infinity();

/// One link of a flow's path. Each unit of the flow's rate takes `amount` units of the link.
struct link_use {
  link_id link{};
  double amount = 1;
};

class max_min {
public:
  /// The small index of a flow. It is reused after the flow is removed.
  using flow_index = std::uint32_t;
  static constexpr link_id no_link{0xffffffff};

  /// Requires: 0 <= capacity, finite.
  link_id add_link(double capacity);
  void set_capacity(link_id link, double capacity);

  /// Adds a flow, which takes part from the next solve() on. Its rate is 0 until then.
  /// Requires: links are distinct; amounts, weight > 0; cap >= 0; a path or a finite cap.
  flow_index add_flow(std::span<const link_use> path, double cap = unlimited, double weight = 1);
  void set_cap(flow_index f, double cap);
  void remove_flow(flow_index f);

  /// Updates all rates. Returns the flows whose rate changed, valid until the next call.
  std::span<const flow_index> solve();

  bool changed() const noexcept { return !seed_links_.empty() || !seed_flows_.empty(); }
  double rate(flow_index f) const { return flows_[f].level * flows_[f].weight; }
  double level(flow_index f) const { return flows_[f].level; }
  /// The link that limits this flow; no_link if its cap does.
  link_id bottleneck(flow_index f) const { return link_id{flows_[f].bottleneck}; }

  std::size_t link_count() const noexcept { return links_.size(); }
  double capacity(link_id link) const { return at(link).capacity; }
  /// The part of the link's capacity that the flows use.
  double used(link_id link) const { return at(link).used; }
  /// The level at which the link fills up; infinite if it does not.
  double fill_level(link_id link) const { return at(link).level; }
  std::size_t flows_on(link_id link) const { return at(link).uses.size(); }
  flow_index flow_on(link_id link, std::size_t i) const { return at(link).uses[i].flow; }

  /// The number of flows that solve() has visited and changed so far, for benchmarks.
  std::uint64_t flows_refilled() const noexcept { return refilled_; }

private:
  enum class state : std::uint8_t { free, resting, rising, settled };

  struct hop {
    std::uint32_t link;
    std::uint32_t place; // index in the link's uses
    double weight;       // amount * the flow's weight: the use for one unit of level
  };
  struct flow_record {
    double level = 0;
    double weight = 1;
    double cap_level = unlimited;
    std::uint32_t first_hop = 0;
    std::uint32_t bottleneck = 0;
    std::uint16_t hop_count = 0;
    state now = state::free;
    bool seeded = false;
  };
  struct use_record {
    flow_index flow;
    std::uint32_t hop;
  };
  struct high_flow {
    double level;
    double weight;
    flow_index flow;
  };
  struct link_record {
    double capacity = 0;
    double used = 0;
    double level = unlimited; // the level of the last solve
    std::vector<use_record> uses;
    // The members below are valid while solve() runs and the link is touched.
    double fixed = 0;         // used by settled flows, and by resting flows that are not high
    double rising_weight = 0; // the weight of rising flows, and of high flows
    double fold_level = 0;    // if opened, resting flows above this level are high
    double next_event = unlimited;
    double new_level = unlimited;
    std::uint32_t rising_count = 0;
    std::uint32_t high_list = 0;
    std::uint32_t drift = 0; // changes of `used` since it was last summed
    bool seeded = false;
    bool touched = false;
    bool opened = false; // resting flows above the water count as rising with it
    bool passed = false; // the water is above the last fill level
    bool closed = false; // full
  };
  struct high_list {
    std::vector<high_flow> flows; // by level
    std::size_t folded = 0;
  };
  struct event {
    double level;
    std::uint32_t what; // a link
    flow_index capped;  // or a flow, if not no_flow
  };
  static constexpr flow_index no_flow = 0xffffffff;

  const link_record& at(link_id link) const { return links_[static_cast<std::uint32_t>(link)]; }
  std::span<hop> hops(const flow_record& f) { return {hops_.data() + f.first_hop, f.hop_count}; }
  void seed(std::uint32_t link);
  void sum_afresh(link_record& link);

  void touch(std::uint32_t link);
  double fill_estimate(const link_record& link, double water) const;
  void schedule(std::uint32_t link, double water);
  void push(event e);
  void meet(std::uint32_t link, double water);
  void raise(flow_index f, double water, bool schedule_links);
  void pass(std::uint32_t link, double water);
  void open(link_record& link, double water);
  void fold(link_record& link, double water);
  void close(std::uint32_t link, double level);
  void settle_rising(flow_index f, double level, std::uint32_t bottleneck);
  void lower(flow_index f, double level, std::uint32_t bottleneck);
  void leave_rest(link_record& link, const flow_record& f, double weight);
  void finish();

  std::vector<link_record> links_;
  std::vector<flow_record> flows_;
  std::vector<flow_index> free_flows_;
  std::vector<hop> hops_;
  std::vector<std::vector<std::uint32_t>> free_hops_; // by path length
  std::vector<std::uint32_t> seed_links_;
  std::vector<flow_index> seed_flows_;

  std::vector<event> events_; // a heap
  std::vector<std::uint32_t> touched_;
  struct old_level {
    flow_index flow;
    double level;
  };
  std::vector<old_level> moved_;
  std::vector<high_list> high_lists_;
  std::uint32_t high_lists_used_ = 0;
  std::vector<flow_index> changed_;
  std::uint64_t refilled_ = 0;
};

} // namespace shoal::netem
