// The pairs of hosts that cannot hear each other: cuts in force, messages that wait at a cut, and
// paused hosts. A host is suspected when nothing has been heard of it for the detection time,
// because of a cut or because it is paused. Thread safety: none. Time comes in as an argument.
#pragma once

#include "kernels/base/units.hpp"
#include "netem/cut.hpp"
#include "netem/ids.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

namespace shoal::netem {

/// What one host cannot send to another because of a cut, besides its bulk.
struct stall {
  std::uint64_t number = 0;
  duration since{};
  host_index relay = no_host;
  std::vector<std::uint32_t> small; // numbers of messages, in order
};

class failure_detector {
public:
  explicit failure_detector(duration detection_time) : detection_time_(detection_time) {}

  duration detection_time() const noexcept { return detection_time_; }

  // -- cuts -----------------------------------------------------------------

  std::uint64_t add_cut(cut what, duration now);
  void remove_cut(std::uint64_t number);
  bool any_cut() const noexcept { return !cuts_.empty(); }
  /// Whether a cut loses what `from` sends to `to`.
  bool blocked(machine_index from, machine_index to) const;
  /// Whether one cut between the two, in either direction, has lasted for the detection time.
  bool cut_off(machine_index a, machine_index b, duration now) const;

  // -- stalls ---------------------------------------------------------------

  struct stalled {
    stall& what;
    bool fresh; ///< this call began it: give_up() is due after the detection time
  };
  /// The stall of a pair of hosts. It begins with the first thing that waits.
  stalled stall_of(std::uint64_t pair, host_index relay, duration now);
  /// Takes the stall with this number; nothing if it has ended meanwhile.
  std::optional<stall> give_up(std::uint64_t pair, std::uint64_t number);
  /// Takes the first stall after `after` for which `open(pair, stall)` is true; nothing if there is
  /// none.
  template <class Predicate>
  std::optional<std::pair<std::uint64_t, stall>> take_open(std::optional<std::uint64_t> after,
                                                           Predicate open);
  /// Takes the stalls of a host that has died, as sender or receiver.
  std::vector<stall> stalls_of(host_index host);

  // -- pauses ---------------------------------------------------------------

  using action = std::function<void()>;

  void pause(host_index host, duration now);
  /// Ends the pause and returns what waited for that.
  std::vector<action> resume(host_index host, duration now);
  /// The host has died: what waited for the end of its pause never runs. Returns that; nothing if
  /// the host was not paused.
  std::optional<std::vector<action>> end_pause_by_death(host_index host);
  bool paused(host_index host) const noexcept {
    return host < pauses_.size() && pauses_[host].paused;
  }
  /// How long the host has been paused so far.
  duration paused_time(host_index host, duration now) const;
  /// Whether the host has been paused for the detection time without a break.
  bool still(host_index host, duration now) const;
  /// Requires: the host is paused.
  void when_resumed(host_index host, action what) {
    when_resumed_[host].push_back(std::move(what));
  }

private:
  std::vector<action> take_waiting(host_index host);

  struct active_cut {
    std::uint64_t number;
    cut what;
    duration since;
  };
  struct pause_state {
    bool paused = false;
    duration since{}, before{}; // `before`: the time of earlier pauses
  };

  duration detection_time_;
  std::vector<active_cut> cuts_;
  std::map<std::uint64_t, stall> stalls_; // by the pair of hosts
  std::uint64_t next_number_ = 1;         // of cuts and stalls
  std::vector<pause_state> pauses_;       // by host, up to the last one that was ever paused
  std::map<host_index, std::vector<action>> when_resumed_;
};

template <class Predicate>
std::optional<std::pair<std::uint64_t, stall>>
failure_detector::take_open(std::optional<std::uint64_t> after, Predicate open) {
  for (auto at = after ? stalls_.upper_bound(*after) : stalls_.begin(); at != stalls_.end(); ++at) {
    if (!open(at->first, at->second)) continue;
    auto out = std::pair(at->first, std::move(at->second));
    stalls_.erase(at);
    return out;
  }
  return std::nullopt;
}

} // namespace shoal::netem
