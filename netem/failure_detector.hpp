// Detects pairs of hosts that cannot hear each other. Keeps the active cuts, the messages that wait
// at a cut, and the paused hosts. A host is suspected after the detection time without a sign of
// life, because of a cut or a pause.
// Thread safety: none. Callers pass the time.
#pragma once

#include "kernels/base/units.hpp"
#include "netem/cut.hpp"
#include "netem/ids.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

namespace shoal::netem {

/// The small messages that a cut keeps one host from sending to another.
struct blocked_pair {
  std::uint64_t number = 0;
  duration since{};
  host_index relay = no_host;
  std::vector<std::uint32_t> small; // the numbers of the messages, in order
};

class failure_detector {
public:
  explicit failure_detector(duration detection_time) : detection_time_(detection_time) {}

  duration detection_time() const noexcept { return detection_time_; }

  // -- cuts -----------------------------------------------------------------

  std::uint64_t add_cut(cut what, duration now);
  void remove_cut(std::uint64_t number);
  bool any_cut() const noexcept { return !cuts_.empty() || !refused_.empty(); }
  /// From now on, no message passes between the two machines. False if it was so before.
  bool refuse(machine_index a, machine_index b, duration now);
  /// True if a cut loses messages from `from` to `to`.
  bool blocked(machine_index from, machine_index to) const;
  /// True if one cut between the two, in either direction, has lasted for the detection time.
  bool cut_off(machine_index a, machine_index b, duration now) const;

  // -- blocked pairs --------------------------------------------------------

  struct blocked_entry {
    blocked_pair& what;
    bool fresh; ///< this call created it: give_up() is due after the detection time
  };
  /// The entry of a pair that a cut blocks. The first waiting message creates it.
  blocked_entry blocked_pair_of(std::uint64_t pair, host_index relay, duration now);
  /// Takes the entry with this number. Returns nothing if the entry has been taken.
  std::optional<blocked_pair> give_up(std::uint64_t pair, std::uint64_t number);
  /// Takes the first blocked pair after `after` for which `open(pair, what)` is true. Returns
  /// nothing if there is none.
  template <class Predicate>
  std::optional<std::pair<std::uint64_t, blocked_pair>>
  take_open(std::optional<std::uint64_t> after, Predicate open);
  /// Takes the blocked pairs in which a dead host is the sender or the receiver.
  std::vector<blocked_pair> blocked_pairs_of(host_index host);

  // -- pauses ---------------------------------------------------------------

  using action = std::function<void()>;

  void pause(host_index host, duration now);
  /// Ends the pause, and returns the actions that waited for its end.
  std::vector<action> resume(host_index host, duration now);
  /// The host has died during a pause. Returns the actions that now never run, or nothing if the
  /// host was not paused.
  std::optional<std::vector<action>> end_pause_by_death(host_index host);
  bool paused(host_index host) const noexcept {
    return host < pauses_.size() && pauses_[host].paused;
  }
  /// The total time for which the host has been paused.
  duration paused_time(host_index host, duration now) const;
  /// True if the current pause has lasted for the detection time.
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
    duration since{}, before{}; // the total of earlier pauses is in `before`
  };

  static std::uint64_t unordered(machine_index a, machine_index b) noexcept {
    return std::uint64_t{std::min(a, b)} << 32 | std::max(a, b);
  }

  duration detection_time_;
  std::vector<active_cut> cuts_;
  std::unordered_map<std::uint64_t, duration> refused_; // since when, by the pair of machines
  std::map<std::uint64_t, blocked_pair> blocked_pairs_; // by the pair of hosts
  std::uint64_t next_number_ = 1;                       // numbers cuts and blocked pairs
  std::vector<pause_state> pauses_; // by host, up to the last one that was ever paused
  std::map<host_index, std::vector<action>> when_resumed_;
};

template <class Predicate>
std::optional<std::pair<std::uint64_t, blocked_pair>>
failure_detector::take_open(std::optional<std::uint64_t> after, Predicate open) {
  for (auto at = after ? blocked_pairs_.upper_bound(*after) : blocked_pairs_.begin();
       at != blocked_pairs_.end(); ++at) {
    if (!open(at->first, at->second)) continue;
    auto out = std::pair(at->first, std::move(at->second));
    blocked_pairs_.erase(at);
    return out;
  }
  return std::nullopt;
}

} // namespace shoal::netem
