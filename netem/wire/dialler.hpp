// Decides when a host dials others, again and again and with back-off: hosts that it wants to send
// to (reconnect), and addresses that it was told to join (join_list).
#pragma once

#include "kernels/base/units.hpp"
#include "netem/event_queue.hpp"
#include "netem/wire/refusal.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace shoal::netem::wire {

struct host_link;

inline constexpr duration longest_back_off = std::chrono::seconds(2);
/// How long to wait after the `attempts`-th attempt: doubled each time, up to the longest.
duration back_off_after(unsigned attempts);

/// Attempts to reach a host that something is to be sent to.
class reconnect {
public:
  bool trying() const noexcept { return trying_; }
  /// Begins to try, unless it does already.
  void begin(duration now);
  void stop() noexcept { trying_ = false; }
  bool due(duration now) const noexcept { return next_ <= now; }
  bool expired(duration now, duration limit) const noexcept { return now - since_ > limit; }
  /// Notes an attempt. Requires: trying, due.
  void attempted(duration now);
  void try_at(duration when) noexcept { next_ = when; }

private:
  bool trying_ = false;
  duration since_{}, next_{};
  unsigned attempts_ = 0;
};

/// Addresses that have to be joined. An entry is dialled until a host answers there, and again when
/// its link is lost.
class join_list {
public:
  void add(std::string where);
  void clear() { entries_.clear(); }

  /// Entries to dial now. `is_up`: whether there is a link with a host.
  std::vector<std::size_t> due(duration now, const std::function<bool(host_index)>& is_up) const;
  struct attempt {
    std::string where;
    std::shared_ptr<host_link>*
        slot; ///< takes the link that is dialled; valid until the list changes
  };
  /// Begins to dial. Nothing if the entry is gone or is dialled already.
  std::optional<attempt> begin(std::size_t entry, duration now, duration patience);
  /// The link that was dialled is up, with `host`.
  void connected(const host_link& link, host_index host);
  /// The link that was dialled is over; `refused` is the other side's word. True if the name is
  /// taken for good: after `limit`.
  bool lost(const host_link& link, refusal refused, duration now, duration limit);
  /// The host is gone for good.
  void forget(host_index host);

private:
  struct entry {
    std::string where;
    std::shared_ptr<host_link> dialling;
    host_index found = no_host; // the host that answered there last
    duration next_try{};
    unsigned attempts = 0;
    std::optional<duration> name_taken_since;
  };
  std::vector<entry> entries_;
};

} // namespace shoal::netem::wire
