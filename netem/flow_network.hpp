// Bulk transfers over time: flows of bytes that share links max-min fairly, each with a cap.
//   remaining(t) = remaining(t0) - rate * (t - t0), with a constant rate between two changes
// A flow ends at the first whole nanosecond at which no byte remains.
//
// All changes at one instant are solved together, at the next query or step of time. A flow with an
// unchanged rate keeps its entry among the completions.
// Left out: delay, slow start, loss and queues. A caller models them by a later start and a cap.
// Determinism: the same calls in the same order give the same results in the same order.
// Complexity: see max_min.hpp; O(log flows) for each flow whose rate changed.
// Thread safety: none.
#pragma once

#include "kernels/base/units.hpp"
#include "netem/max_min.hpp"

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace shoal::netem {

/// The id of a flow. No two flows of a network, ended ones included, have equal ids.
struct flow_id {
  std::uint32_t slot = 0xffffffff;
  std::uint32_t generation = 0;
  auto operator<=>(const flow_id&) const = default;
};

struct finished_flow {
  flow_id flow;
  std::uint64_t tag = 0;
  duration at{};
};

/// Callers pass the time with every change; it never goes back. Before a change at `now`, advance()
/// must have removed all flows that end before `now`. A flow that ends at `now` may still be there.
class flow_network {
public:
  using finished = finished_flow;

  /// Requires: 0 <= bits_per_second, finite. Flows over a link of rate 0 do not move.
  link_id add_link(double bits_per_second);
  void set_capacity(link_id link, double bits_per_second, duration now);

  /// Starts a flow of `bytes` over distinct links. finished_flow returns the `tag`. A flow of 0
  /// bytes, or without links and cap, ends at `now`.
  flow_id start(std::span<const link_id> path, std::uint64_t bytes, double cap_bits_per_second,
                duration now, std::uint64_t tag);
  /// Starts a flow with a weight. Its share of a link is proportional to `weight`, and it uses the
  /// given amount of each link.
  flow_id start(std::span<const link_use> path, std::uint64_t bytes, double cap_bits_per_second,
                double weight, duration now, std::uint64_t tag);
  void set_cap(flow_id flow, double cap_bits_per_second, duration now);
  /// Removes the flow. Returns its remaining bytes, rounded up.
  std::uint64_t cancel(flow_id flow, duration now);

  /// The earliest end of a flow; nothing if no flow moves.
  std::optional<duration> next_completion();
  /// Appends every flow that ends at or before `now`, ordered by end and then by start. Each end
  /// takes the rates into account that earlier ends have changed.
  void advance(duration now, std::vector<finished>& out);

  bool alive(flow_id flow) const;
  /// Bits per second, with all changes so far.
  double rate(flow_id flow);
  /// The remaining bytes at `now`. Requires: no flow ends before `now`.
  double remaining_bytes(flow_id flow, duration now);
  std::uint64_t bytes(flow_id flow) const;
  std::uint64_t tag(flow_id flow) const;
  duration started(flow_id flow) const;
  /// The end of the flow if nothing changes; duration::max() if the flow does not move.
  duration expected_end(flow_id flow);
  /// The link that limits the flow; nothing if the cap does.
  std::optional<link_id> bottleneck(flow_id flow);

  double capacity(link_id link) const { return solver_.capacity(link); }
  /// The bits per second that the flows use of the link.
  double used(link_id link);
  /// The flows on a link, ordered by start.
  std::vector<flow_id> flows_on(link_id link) const;
  /// Calls `with(tag, rate, limited)` for each flow on the link, as of the last solution.
  /// `limited`: this link is the flow's bottleneck. The order is the same in each run.
  template <class F>
  void each_on(link_id link, F&& with) const {
    for (std::size_t i = 0; i < solver_.flows_on(link); ++i) {
      const auto f = solver_.flow_on(link, i);
      with(flows_[slot_of_[f]].tag, solver_.rate(f), solver_.bottleneck(f) == link);
    }
  }
  std::size_t count_on(link_id link) const { return solver_.flows_on(link); }
  std::size_t link_count() const noexcept { return solver_.link_count(); }

  /// A flow has this rate from `at` on.
  struct rate_note {
    std::uint64_t tag = 0;
    duration at{};
    double rate = 0;
    std::optional<link_id> bottleneck;
    std::uint32_t sharers = 0; ///< flows on the bottleneck
  };
  /// Appends rate changes to `notes` from now on. Null ends this.
  void watch(std::vector<rate_note>* notes) noexcept { watch_ = notes; }
  /// The rate of the flow with this tag changes at `at`.
  struct rate_changed {
    std::uint64_t tag = 0;
    duration at{};
  };
  /// Appends changes to `changes` from now on. Null ends this. Costs less than watch().
  void follow(std::vector<rate_changed>* changes) noexcept { follow_ = changes; }
  std::size_t active() const noexcept { return active_; }
  duration now() const noexcept { return now_; }
  /// The number of rates computed again so far, for benchmarks.
  std::uint64_t flows_refilled() const noexcept { return solver_.flows_refilled(); }

private:
  static constexpr std::uint32_t none = 0xffffffff;

  struct flow_record {
    double remaining_bits = 0; // at the time `since`
    double rate = 0;
    duration since{};
    duration end = duration::max();
    std::uint64_t sequence = 0;
    std::uint64_t tag = 0;
    std::uint64_t bytes = 0;
    duration started{};
    max_min::flow_index in_solver = none;
    std::uint32_t generation = 0;
    std::uint32_t heap_place = none;
    bool alive = false;
  };
  struct completion {
    duration end;
    std::uint64_t sequence;
    std::uint32_t slot;
    bool operator<(const completion& other) const {
      return end != other.end ? end < other.end : sequence < other.sequence;
    }
  };

  flow_record& at(flow_id flow);
  const flow_record& at(flow_id flow) const;
  void move_to(duration now);
  void settle();
  void set_rate(std::uint32_t slot, double rate);
  void set_end(std::uint32_t slot, duration end);
  void release(std::uint32_t slot);
  void sift_up(std::size_t place, completion entry);
  void sift_down(std::size_t place, completion entry);
  void put(std::size_t place, const completion& entry);

  max_min solver_;
  std::vector<flow_record> flows_;
  std::vector<std::uint32_t> free_;
  std::vector<std::uint32_t> slot_of_;  // by index in the solver
  std::vector<completion> completions_; // a heap of arity 4; flows know their place
  std::vector<link_use> path_;
  duration now_{};
  std::uint64_t next_sequence_ = 0;
  std::size_t active_ = 0;
  std::vector<rate_note>* watch_ = nullptr;
  std::vector<rate_changed>* follow_ = nullptr;
};

} // namespace shoal::netem
