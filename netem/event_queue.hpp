// A queue of events ordered by (time, sequence). If two events have equal times, the one that was
// pushed first comes first, so a seed determines the history. Entries can be cancelled; a cancelled
// entry is dropped without moving time. take() returns the event instead of destroying it here. The
// event may hold the last reference to an actor, whose end can push further events.
//
// Most events are arrivals of messages. An arrival is a number alone, and nothing cancels it, so it
// has no slot.
//
// The queue is a radix heap. Bucket 0 has the entries of the last popped time. Bucket b has those
// whose first bit that differs from the last popped time is bit b - 1. When bucket 0 is used up,
// the entries of the next bucket move to lower ones, in their order. So entries of equal times stay
// in the order in which they were pushed, and no entry is compared with another one. Source: Ahuja,
// Mehlhorn, Orlin and Tarjan, "Faster algorithms for the shortest path problem", Journal of the ACM
// 37(2), 1990.
#pragma once

#include "kernels/base/units.hpp"
#include "netem/ids.hpp"

#include <caf/actor_control_block.hpp>
#include <caf/mailbox_element.hpp>

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace shoal::netem {

/// Identifies a pushed event; 0 identifies none.
using event_handle = std::uint64_t;

/// A message for an actor, or an action.
struct event {
  duration when{};
  caf::strong_actor_ptr receiver;
  caf::mailbox_element_ptr element;
  std::function<void()> action;
  host_index on_behalf = no_host; ///< the host that scheduled the message; none: the receiver's own
  caf::actor_id owner = 0;        ///< the end of this actor makes the event pointless; 0: none
};

class event_queue {
public:
  /// An event before the last popped time counts as one at that time.
  event_handle push(event&& what);
  void push_arrival(duration when, std::uint32_t number);
  /// Returns nothing if the event was delivered or taken before. Complexity: amortized O(log
  /// size()).
  std::optional<event> take(event_handle handle);
  bool cancel(event_handle handle) { return take(handle).has_value(); }
  /// Takes all events of one owner. Complexity: linear in their number.
  std::vector<event> take_owned(caf::actor_id owner);
  std::vector<event> take_all();

  bool empty() const noexcept { return live_ == 0; }
  std::size_t size() const noexcept { return live_; }
  /// Requires: !empty().
  duration next_time();
  /// Takes the first event if it is an arrival. Requires: !empty().
  std::optional<std::uint32_t> pop_arrival();
  /// Requires: !empty(), and the first event is no arrival.
  event pop();

private:
  static constexpr std::uint32_t none = 0xffffffff;
  static constexpr std::uint32_t arrival = 0; // in place of a generation
  struct slot {
    event content;
    std::uint32_t generation = 1;
    std::uint32_t next = none, previous = none; // among the events of one owner
    bool live = false;
  };
  struct entry {
    std::int64_t when;
    std::uint32_t slot; // or the number of an arrival
    std::uint32_t generation;
  };

  bool cancelled(const entry& what) const {
    return what.generation != arrival && slots_[what.slot].generation != what.generation;
  }
  event release(std::uint32_t index);
  void add(duration when, std::uint32_t slot, std::uint32_t generation);
  void put(const entry& what);
  void drop_cancelled();
  void drop_cancelled(std::size_t bucket);
  void note_if_empty(std::size_t bucket);
  const entry& first();
  void drop_first();

  std::array<std::vector<entry>, 64> buckets_;
  std::uint64_t filled_ = 0;     // a bit for each bucket with entries
  std::size_t used_ = 0;         // the entries of bucket 0 that were popped already
  std::int64_t last_ = 0;        // the last popped time
  std::optional<duration> next_; // next_time(), if it is known
  std::size_t entries_ = 0;      // in all buckets, cancelled ones too
  std::vector<slot> slots_;
  std::vector<std::uint32_t> free_;
  std::vector<std::uint32_t> first_of_; // by owner
  std::size_t live_ = 0;
};

} // namespace shoal::netem
