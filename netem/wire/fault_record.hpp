// Records the faults of other hosts: the end of each ban, and the number of unknown hosts that a
// host has named lately. A host is known by the key of its certificate, or by its name if there are
// no keys.
#pragma once

#include "kernels/base/units.hpp"
#include "netem/wire/allowance.hpp"

#include <chrono>
#include <cstddef>
#include <map>
#include <string>

namespace shoal::netem::wire {

/// The longest ban. A fault is forgotten this long after the end of its ban.
inline constexpr duration longest_ban = std::chrono::hours(1);

/// Thread safety: none; the local host's lock guards it.
class fault_record {
public:
  /// Bans a host for `first`. Each further ban is twice as long, up to longest_ban.
  void ban(const std::string& who, duration now, duration first);
  bool is_banned(const std::string& who, duration now) const;
  /// Forgets old faults, and hosts that have named no unknown host lately.
  void expire(duration now);
  /// Adds `unheard` to the number of unknown hosts named by `who`. Returns true if they are more
  /// than the allowance: `most` at once, and `most` more in each hour.
  bool names_too_many(const std::string& who, std::size_t unheard, std::size_t most, duration now);
  /// The number of hosts with a record.
  std::size_t size() const noexcept { return banned_.size() + named_.size(); }

private:
  struct ban_state {
    duration until{}, next{}; // the end of the ban, and the length of the next one
  };
  std::map<std::string, ban_state> banned_;
  std::map<std::string, allowance> named_;
};

} // namespace shoal::netem::wire
