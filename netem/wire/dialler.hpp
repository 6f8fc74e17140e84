// Decides when a host dials others, with back-off. A `reconnect` dials a host that has messages
// waiting; a `join_list` dials addresses that the user gave.
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
/// The time to wait after attempt number `attempts`. It doubles with each attempt, up to
/// longest_back_off.
duration back_off_after(unsigned attempts);

/// The attempts to reach one host that messages wait for.
class reconnect {
public:
  bool trying() const noexcept { return trying_; }
  /// Starts the attempts. Does nothing if they have started already.
  void begin(duration now);
  void stop() noexcept { trying_ = false; }
  bool due(duration now) const noexcept { return next_ <= now; }
  bool expired(duration now, duration limit) const noexcept { return now - since_ > limit; }
  /// Records an attempt. Requires: trying() and due().
  void attempted(duration now);
  /// The attempt has failed. `refused`: the address is there, and no process listens at it.
  void failed(bool refused) noexcept { refusals_ = refused ? refusals_ + 1 : 0; }
  /// There is a link. The attempts are over.
  void linked() noexcept { *this = {}; }
  /// The address that another host told has refused, and a second host tells the same. A third one
  /// may know better until the next attempt is due.
  void confirmed() noexcept { confirmed_ = true; }
  /// Another host told an address that has not failed.
  void told() noexcept { confirmed_ = false; }
  /// The host's process has ended: its address has refused two attempts in a row, or two hosts told
  /// the address that refuses. After two refusals one is enough, until there is a link.
  bool has_ended(duration now) const noexcept { return refusals_ >= 2 || (confirmed_ && due(now)); }
  void try_at(duration when) noexcept { next_ = when; }
  duration next() const noexcept { return next_; }

private:
  bool trying_ = false, confirmed_ = false;
  duration since_{}, next_{};
  unsigned attempts_ = 0, refusals_ = 0;
};

/// The addresses to join. The host dials an address until a host answers there, and again when that
/// link is lost.
class join_list {
public:
  void add(std::string where);
  void clear() { entries_.clear(); }

  /// The entries to dial now. `is_up` says whether a link to a host is up.
  std::vector<std::size_t> due(duration now, const std::function<bool(host_index)>& is_up) const;
  struct attempt {
    std::string where;
    /// Receives the dialled link. Valid until the list changes.
    std::shared_ptr<host_link>* slot;
  };
  /// Begins to dial. Returns nothing if the entry is gone or is being dialled.
  std::optional<attempt> begin(std::size_t entry, duration now, duration timeout);
  /// A link with some host is up.
  void linked() noexcept { was_linked_ = true; }
  /// The dialled link to `host` is up.
  void connected(const host_link& link, host_index host);
  /// The dialled link has ended; `refused` is the other side's reason. Returns true if this host
  /// cannot join at all: no link was ever up, and each address refuses it for the same permanent
  /// reason. One host alone cannot turn this host away, since it may not tell the truth. A name
  /// that is taken is a permanent reason after `limit`.
  bool lost(const host_link& link, refusal refused, duration now, duration limit);
  /// The host is gone permanently.
  void forget(host_index host);

private:
  struct entry {
    std::string where;
    std::shared_ptr<host_link> dialling;
    host_index found = no_host; // the host that answered there last
    duration next_try{};
    unsigned attempts = 0;
    std::optional<duration> name_taken_since;
    refusal refused = refusal::none; // the outcome of the last attempt
  };
  bool was_linked_ = false;
  std::vector<entry> entries_;
};

} // namespace shoal::netem::wire
