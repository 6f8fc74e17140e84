// The faults of other hosts, by name: who is banned until when, and how many hosts each has named
// that nobody had heard of.
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
  /// Forgets bans that are over.
  void expire(duration now);
  /// Adds `unheard` hosts to those that `name` has named. True once that is more than `most`.
  bool names_too_many(const std::string& name, std::size_t unheard, std::size_t most) {
    return (named_[name] += unheard) > most;
  }

private:
  std::map<std::string, duration> banned_; // until when
  std::map<std::string, std::size_t> named_;
};

} // namespace shoal::netem::wire
