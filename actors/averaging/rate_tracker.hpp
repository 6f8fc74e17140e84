// Tracks by how much the lines of other peers fall short of their declared rates. A reducer whose
// part is late in round after round gets smaller parts.
//
// Steps:
// 1. In each round a member measures when each part was complete. A slow sender, or the member's
//   own slow line, delays all parts. A slow reducer delays only its own part.
// 2. A part is late if it completes after its due time, by more than chance (`tolerance`, `least`).
//   The due time is the later of two times. The first is the time at which three quarters of the
//   parts were complete. It excuses reducers that are as slow as many others: far away, or with
//   large planned parts. The second is the time that the reducer's line needs for this round at its
//   declared rate. It excuses a reducer that got a large part because a leader had low factors for
//   the others; each leader plans with its own factors.
// 3. The factor of a late reducer is multiplied by sqrt(due time / measured time). All other
//   factors grow by `recovery` per round, up to 1, also those of peers without a part. Else a peer
//   that was late once, and then gets no part, would be left out for ever.
//
// A leader plans with the declared rate times the factor. So a peer that overstates its rate, or
// whose line became slower, reduces less from the next round on. A factor never exceeds 1: a peer
// with a faster line can declare it. Memory: the peers with a factor below 1.
#pragma once

#include "actors/ids.hpp"
#include "kernels/base/units.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

namespace shoal::actors {

class rate_tracker {
public:
  static constexpr double tolerance = 1.25, recovery = 1.04, lowest = 1.0 / 256;
  static constexpr duration least = std::chrono::milliseconds(100);

  /// Updates the factors after a round. `times[i]` runs from the begin of the round until the part
  /// of `reducers[i]` was complete. `line_times[i]` is how long the reducer's line is busy with the
  /// round at its declared rate. Both are 0 for an empty part. Requires: equal sizes.
  void measured(const std::vector<peer_id>& reducers, const std::vector<duration>& times,
                const std::vector<duration>& line_times) {
    std::vector<duration> sorted;
    for (const auto t : times)
      if (t > duration{}) sorted.push_back(t);
    std::sort(sorted.begin(), sorted.end());
    const auto most = sorted.empty() ? duration{} : sorted[3 * (sorted.size() - 1) / 4];
    std::map<peer_id, double> late;
    for (std::size_t i = 0; i < times.size(); ++i) {
      const auto due = std::max(most, line_times[i]);
      if (sorted.size() > 1 && times[i] - due > least &&
          to_seconds(times[i]) > tolerance * to_seconds(due))
        late[reducers[i]] = std::max(lowest, factor(reducers[i]) *
                                                 std::sqrt(to_seconds(due) / to_seconds(times[i])));
    }
    unmeasured();
    for (const auto& [peer, factor] : late) factors_[peer] = factor;
  }
  /// Updates the factors after a round that failed after `waited`. A part that had not arrived by
  /// then counts as having taken that long.
  void timed_out(const std::vector<peer_id>& reducers, std::vector<duration> times,
                 const std::vector<duration>& line_times, duration waited) {
    for (std::size_t i = 0; i < times.size(); ++i)
      if (times[i] == duration{} && line_times[i] > duration{}) times[i] = waited;
    measured(reducers, times, line_times);
  }
  /// Updates the factors after a round without measurements.
  void unmeasured() {
    for (auto& [peer, factor] : factors_) factor *= recovery;
    std::erase_if(factors_, [](const auto& one) { return one.second >= 1; });
  }

  /// The fraction of its declared rate that a peer is expected to carry, in (0, 1].
  double factor(peer_id peer) const {
    const auto found = factors_.find(peer);
    return found == factors_.end() ? 1 : found->second;
  }
  const std::map<peer_id, double>& factors() const noexcept { return factors_; }

private:
  std::map<peer_id, double> factors_;
};

} // namespace shoal::actors
