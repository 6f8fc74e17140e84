// Records the faults of other hosts by name: the end of each ban, and the number of unknown hosts
// that a host has named.
#pragma once

#include "kernels/base/units.hpp"

#include <cstddef>
#include <map>
#include <string>

namespace shoal::netem::wire {

/// Thread safety: none; the station's lock guards it.
class conduct {
public:
  void ban(const std::string& name, duration until) { banned_[name] = until; }
  bool is_banned(const std::string& name, duration now) const;
  /// Removes bans that have ended.
  void expire(duration now);
  /// Adds `unheard` unknown hosts to the count of `name`. Returns true if the count exceeds `most`.
  bool names_too_many(const std::string& name, std::size_t unheard, std::size_t most) {
    return (named_[name] += unheard) > most;
  }

private:
  std::map<std::string, duration> banned_; // the time at which the ban ends
  std::map<std::string, std::size_t> named_;
};

} // namespace shoal::netem::wire
