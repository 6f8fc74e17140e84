// What is known of the lines of others beyond what they say: whose part comes late again and again carries less than it says.
//   In each round a member sees when each part was complete for it. A sender that is slow delays all parts, and so does the
//   member's own line; only a part's reducer delays that part alone. So a part that comes later than most, by more than chance
//   (`tolerance`, `least`), tells of its reducer's line: its factor is multiplied by sqrt(median time / its time).
//   A reducer that is in time gains `recovery` a round, up to what it says.
// A leader plans with declared rate times factor, so who overstates its line, or whose line became slower, reduces less from the next
// round on, and the round takes what its real rates allow. Nobody is believed to carry more than it says: it may say so.
// Memory: those whose factor is below 1.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "actors/ids.hpp"
#include "kernels/base/units.hpp"

namespace shoal::actors {

class rate_book {
 public:
  static constexpr double tolerance = 1.25, recovery = 1.04, lowest = 1.0 / 256;
  static constexpr duration least = std::chrono::milliseconds(100);

  /// `times[i]`: from the round's begin until the part of `reducers[i]` was complete; 0 where there was none.
  void measured(const std::vector<peer_id>& reducers, const std::vector<duration>& times) {
    std::vector<duration> sorted;
    for (const auto t : times)
      if (t > duration{}) sorted.push_back(t);
    if (sorted.size() < 2) return;
    std::sort(sorted.begin(), sorted.end());
    const auto median = sorted[(sorted.size() - 1) / 2];
    for (std::size_t i = 0; i < times.size(); ++i) {
      if (times[i] == duration{}) continue;
      auto& factor = factors_.try_emplace(reducers[i], 1).first->second;
      if (times[i] - median > least && to_seconds(times[i]) > tolerance * to_seconds(median))
        factor = std::max(lowest, factor * std::sqrt(to_seconds(median) / to_seconds(times[i])));
      else
        factor *= recovery;
      if (factor >= 1) factors_.erase(reducers[i]);
    }
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

}  // namespace shoal::actors
