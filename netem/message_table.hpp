// The messages that wait, are being sent or will arrive. Each has a number, which is reused later.
// Thread safety: none.
#pragma once

#include "kernels/base/units.hpp"
#include "netem/ids.hpp"

#include <caf/actor_control_block.hpp>
#include <caf/mailbox_element.hpp>

#include <cstdint>
#include <utility>
#include <vector>

namespace shoal::netem {

/// The index of no message and of no line.
inline constexpr std::uint32_t no_index = 0xffffffff;

struct message_under_way {
  caf::strong_actor_ptr address; // the receiver's address
  caf::mailbox_element_ptr element;
  endpoint from, to;
  std::uint64_t bytes = 0; // on the wire
  duration sent{};
  const char* type = "";
  duration left{};               // when its last byte left
  duration arrives{};            // bulk: when all that has left so far arrives
  std::uint64_t begun = 0;       // bulk: the bytes that a connection has taken
  std::uint32_t transfers = 0;   // bulk: the connections that carry a part of it now
  std::uint32_t line = no_index; // bulk: its line
  std::uint32_t next = no_index; // bulk: the next message of the line
  host_index relay = no_host;    // the relay on the way
};

class message_table {
public:
  std::uint32_t keep(message_under_way what) {
    if (free_.empty()) {
      all_.push_back(std::move(what));
      return static_cast<std::uint32_t>(all_.size() - 1);
    }
    const auto at = free_.back();
    free_.pop_back();
    all_[at] = std::move(what);
    return at;
  }
  /// Removes a message. Its number is free again.
  message_under_way take(std::uint32_t number) {
    free_.push_back(number);
    return std::move(all_[number]);
  }
  std::vector<message_under_way> take_all() {
    free_.clear();
    return std::exchange(all_, {});
  }

  message_under_way& operator[](std::uint32_t number) { return all_[number]; }
  const message_under_way& operator[](std::uint32_t number) const { return all_[number]; }

private:
  std::vector<message_under_way> all_;
  std::vector<std::uint32_t> free_;
};

} // namespace shoal::netem
