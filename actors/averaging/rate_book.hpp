// What is known of the lines of others beyond what they say: whose part comes late again and again
// carries less than it says.
//   In each round a member sees when each part was complete for it. A sender that is slow delays
//   all parts, and so does the member's own line; only a part's reducer delays that part alone. So
//   a part tells of its reducer's line if it comes later, by more than chance (`tolerance`,
//   `least`), than
//     three quarters of the parts: who is far away, and whom the plan gave more, is not alone with
//     it, and its reducer's line needs for this round if it carries what it says: each leader plans
//     with a book of its own, and whoever got a large part from one that thinks little of the
//     others is late for all of them.
//   The reducer's factor is multiplied by sqrt(what it should have taken at most / what it took).
//   Everybody else gains `recovery` a round, up to what it says: also who had no part, or was not
//   there. Else who was late once, and was given nothing to reduce then, would be left out for as
//   long as this peer lives, and the others would carry more and be late in turn.
// A leader plans with declared rate times factor, so who overstates its line, or whose line became
// slower, reduces less from the next round on, and the round takes what its real rates allow.
// Nobody is believed to carry more than it says: it may say so. Memory: those whose factor is
// below 1.
#pragma once

#include "actors/ids.hpp"
#include "kernels/base/units.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

namespace shoal::actors {

class rate_book {
public:
  static constexpr double tolerance = 1.25, recovery = 1.04, lowest = 1.0 / 256;
  static constexpr duration least = std::chrono::milliseconds(100);

  /// `times[i]`: from the round's begin until the part of `reducers[i]` was complete,
  /// `line_times[i]`: how long its line is busy with the round if it carries what it says; 0 where
  /// there was no part. Requires: equal sizes.
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
  /// The same of a round that was given up after `waited`: what had not come by then took so long
  /// at least.
  void timed_out(const std::vector<peer_id>& reducers, std::vector<duration> times,
                 const std::vector<duration>& line_times, duration waited) {
    for (std::size_t i = 0; i < times.size(); ++i)
      if (times[i] == duration{} && line_times[i] > duration{}) times[i] = waited;
    measured(reducers, times, line_times);
  }
  /// Of a round that says nothing about lines.
  void unmeasured() {
    for (auto& [peer, factor] : factors_) factor *= recovery;
    std::erase_if(factors_, [](const auto& one) { return one.second >= 1; });
  }

  /// Of what it says, (0, 1].
  double factor(peer_id peer) const {
    const auto found = factors_.find(peer);
    return found == factors_.end() ? 1 : found->second;
  }
  const std::map<peer_id, double>& factors() const noexcept { return factors_; }

private:
  std::map<peer_id, double> factors_;
};

} // namespace shoal::actors
