// Events ordered by (time, sequence): what is pushed first among equals happens first, so one seed
// gives one history. Entries can be cancelled; a cancelled entry is dropped without moving time.
// An event that is taken out early is handed back and not destroyed here: what it holds may be the
// last reference to an actor, whose end can push further events.
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

/// Names one pushed event; 0 names none.
using event_handle = std::uint64_t;

/// Either a message for an actor or an action.
struct event {
  duration when{};
  caf::strong_actor_ptr receiver;
  caf::mailbox_element_ptr element;
  std::function<void()> action;
  host_index on_behalf = no_host; ///< who scheduled the message; none: the receiver itself
  caf::actor_id owner = 0;        ///< the actor whose end makes the event pointless; 0: none
};

class event_queue {
public:
  event_handle push(event&& what);
  /// None if it has happened or was taken before. Complexity: amortized O(log size()).
  std::optional<event> take(event_handle handle);
  bool cancel(event_handle handle) { return take(handle).has_value(); }
  /// Takes all events of one owner. Complexity: of their number.
  std::vector<event> take_owned(caf::actor_id owner);
  std::vector<event> take_all();

  bool empty() const noexcept { return live_ == 0; }
  std::size_t size() const noexcept { return live_; }
  /// Requires: !empty().
  duration next_time();
  /// Requires: !empty().
  event pop();

private:
  static constexpr std::uint32_t none = 0xffffffff;
  struct slot {
    event content;
    std::uint32_t generation = 1;
    std::uint32_t next = none, previous = none; // among the events of one owner
    bool live = false;
  };
  struct entry {
    std::int64_t when;
    std::uint64_t sequence;
    std::uint32_t slot;
    std::uint32_t generation;
    bool operator<(const entry& other) const noexcept {
      return when != other.when ? when < other.when : sequence < other.sequence;
    }
  };

  event release(std::uint32_t index);
  void drop_cancelled();
  void sift_up(std::size_t at);
  void sift_down(std::size_t at);
  void drop_first();

  std::vector<entry> heap_; // four children each: half as many levels, siblings in two cache lines
  std::vector<slot> slots_;
  std::vector<std::uint32_t> free_;
  std::vector<std::uint32_t> first_of_; // by owner
  std::uint64_t sequence_ = 0;
  std::size_t live_ = 0;
};

} // namespace shoal::netem
