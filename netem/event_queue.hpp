// Events ordered by (time, sequence): what is pushed first among equals happens first, so one seed
// gives one history. Entries can be cancelled; a cancelled entry is dropped without moving time.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include <caf/actor_control_block.hpp>
#include <caf/mailbox_element.hpp>

#include "kernels/base/units.hpp"

namespace shoal::netem {

/// Names one pushed event; 0 names none.
using event_handle = std::uint64_t;

/// Either a message for an actor or an action.
struct event {
  duration when{};
  caf::strong_actor_ptr receiver;
  caf::mailbox_element_ptr element;
  std::function<void()> action;
};

class event_queue {
 public:
  event_handle push(event what);
  /// False if it has happened or was cancelled before.
  bool cancel(event_handle handle);

  bool empty() const noexcept { return live_ == 0; }
  std::size_t size() const noexcept { return live_; }
  /// Requires: !empty().
  duration next_time();
  /// Requires: !empty().
  event pop();
  void clear();

 private:
  struct slot {
    event content;
    std::uint32_t generation = 1;
    bool live = false;
  };
  struct entry {
    std::int64_t when;
    std::uint64_t sequence;
    std::uint32_t slot;
    std::uint32_t generation;
    bool operator>(const entry& other) const noexcept {
      return when != other.when ? when > other.when : sequence > other.sequence;
    }
  };

  void release(std::uint32_t index);
  void drop_cancelled();

  std::vector<entry> heap_;
  std::vector<slot> slots_;
  std::vector<std::uint32_t> free_;
  std::uint64_t sequence_ = 0;
  std::size_t live_ = 0;
};

}  // namespace shoal::netem
