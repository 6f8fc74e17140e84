// A queue of events ordered by (time, sequence). If two events have equal times, the one that was
// pushed first comes first, so a seed determines the history. Entries can be cancelled; a cancelled
// entry is dropped without moving time. take() returns the event instead of destroying it here. The
// event may hold the last reference to an actor, whose end can push further events.
//
// Most events are arrivals of messages. An arrival is a number alone, and nothing cancels it, so it
// has no slot.
#pragma once

#include "kernels/base/units.hpp"
#include "netem/ids.hpp"

#include <caf/actor_control_block.hpp>
#include <caf/mailbox_element.hpp>

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
  /// Takes the first event if it is an arrival. Requires: next_time() was called since the last
  /// other call.
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
    std::uint64_t sequence;
    std::uint32_t slot; // or the number of an arrival
    std::uint32_t generation;
    // Without branches, because a heap's comparisons cannot be predicted.
    bool operator<(const entry& other) const noexcept {
      return (when < other.when) | ((when == other.when) & (sequence < other.sequence));
    }
  };

  bool cancelled(const entry& what) const {
    return what.generation != arrival && slots_[what.slot].generation != what.generation;
  }
  event release(std::uint32_t index);
  void drop_cancelled();
  void sift_up(std::size_t at);
  void sift_down(std::size_t at);
  void drop_first();

  // four children each: half the levels, and siblings share two cache lines
  std::vector<entry> heap_;
  std::vector<slot> slots_;
  std::vector<std::uint32_t> free_;
  std::vector<std::uint32_t> first_of_; // by owner
  std::uint64_t sequence_ = 0;
  std::size_t live_ = 0;
};

} // namespace shoal::netem
