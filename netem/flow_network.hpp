// Bulk transfers over time: flows of bytes that share links max-min fairly, each with a cap.
//   progress of a flow: remaining(t) = remaining(t0) - rate * (t - t0), its rate being constant
//   between two changes; it ends at the first whole nanosecond at which nothing remains.
// All changes at one instant are solved together, when somebody next asks or time next moves. A
// flow whose rate stays the same is not touched, nor is its entry among the completions.
// What it leaves out: delay, slow start, loss and queues; a caller expresses them as a later
// start and as a cap.
// Determinism: the same calls in the same order give the same results in the same order.
// Complexity: see max_min.hpp; O(log flows) per flow whose rate changed.
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

/// Never equal to the id of another flow of the same network, ended ones included.
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

/// Time is given with every change and never goes back. Before a change at `now`, everything that
/// ends before `now` must have been taken out by advance(); what ends at `now` may still be there.
class flow_network {
public:
  using finished = finished_flow;

  /// Requires: 0 <= bits_per_second, finite. Flows over a link of rate 0 stand still.
  link_id add_link(double bits_per_second);
  void set_capacity(link_id link, double bits_per_second, duration now);

  /// Starts a flow of `bytes` over distinct links. `tag` comes back when it ends. A flow of 0
  /// bytes, or without links and cap, ends at `now`.
  flow_id start(std::span<const link_id> path, std::uint64_t bytes, double cap_bits_per_second,
                duration now, std::uint64_t tag);
  /// The same with a share of the links in proportion to `weight` and amounts of use per link.
  flow_id start(std::span<const link_use> path, std::uint64_t bytes, double cap_bits_per_second,
                double weight, duration now, std::uint64_t tag);
  void set_cap(flow_id flow, double cap_bits_per_second, duration now);
  /// Takes the flow out. Returns the bytes still to go, a started byte counting as whole.
  std::uint64_t cancel(flow_id flow, duration now);

  /// The earliest time at which a flow ends; none if no flow moves.
  std::optional<duration> next_completion();
  /// Appends every flow that ends up to and including `now`, by time and then by start, each at its
  /// own time and with the rates that the earlier ends left it.
  void advance(duration now, std::vector<finished>& out);

  bool alive(flow_id flow) const;
  /// Bits per second, all changes so far included.
  double rate(flow_id flow);
  /// Bytes still to go at `now`. Requires: no flow ends before `now`.
  double remaining_bytes(flow_id flow, duration now);
  std::uint64_t bytes(flow_id flow) const;
  std::uint64_t tag(flow_id flow) const;
  duration started(flow_id flow) const;
  /// When it will end if nothing changes; duration::max() if it stands still.
  duration expected_end(flow_id flow);
  /// The link that holds the flow back, none if its cap does.
  std::optional<link_id> bottleneck(flow_id flow);

  double capacity(link_id link) const { return solver_.capacity(link); }
  /// Bits per second taken of the link.
  double used(link_id link);
  /// The flows on a link, by start.
  std::vector<flow_id> flows_on(link_id link) const;
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
  /// Appends to `notes` from now on, until told null.
  void watch(std::vector<rate_note>* notes) noexcept { watch_ = notes; }
  /// The rate of the flow with this tag is another from `at` on.
  struct rate_changed {
    std::uint64_t tag = 0;
    duration at{};
  };
  /// Appends to `changes` from now on, until told null; it costs less than watch().
  void follow(std::vector<rate_changed>* changes) noexcept { follow_ = changes; }
  std::size_t active() const noexcept { return active_; }
  duration now() const noexcept { return now_; }
  /// Rates computed again so far, for benchmarks.
  std::uint64_t flows_refilled() const noexcept { return solver_.flows_refilled(); }

private:
  static constexpr std::uint32_t none = 0xffffffff;

  struct flow_record {
    double remaining_bits = 0; // at `since`
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
