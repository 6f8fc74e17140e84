// What time it is for most of those a node talks to, so that a host whose clock is wrong neither
// hides records that live nor keeps those that do not.
//
// Each answer tells a UTC. By our steady clock it was told between the question and the answer,
// which bounds by how much that UTC is ahead of the steady clock: a vote. Ours counts as one more,
// and any other that could agree with it does. The median is taken, of the two in the middle the
// one nearer to ours: with only one other we believe ourselves. So right clocks are never moved by
// delays, a clock set forward changes one vote, and a minority of liars none. Source: Marzullo and
// Owicki, "Maintaining the Time in a Distributed System", PODC 1983, for votes that are intervals.
#pragma once

#include "actors/dht/node_id.hpp"
#include "kernels/base/units.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>

namespace shoal::actors {

class clock_votes {
public:
  /// `who` told `utc_ns` between `asked` and `answered` of our steady clock. One vote each: the
  /// last. What no clock shows (before 1970, after 2116) is none.
  void told(const node_id& who, std::int64_t utc_ns, duration asked, duration answered) {
    if (utc_ns < 0 || utc_ns > latest_utc_ns) return;
    std::erase_if(votes_, [&](const vote& v) { return v.who == who; });
    votes_.push_back({who, utc_ns - answered.count(), utc_ns - asked.count()});
    if (votes_.size() > most_votes) votes_.pop_front();
  }

  /// The UTC now, as most have it. `own_utc_ns`: as we do.
  std::int64_t utc_ns(std::int64_t own_utc_ns, duration now) const {
    const auto own = own_utc_ns - now.count();
    std::array<std::int64_t, most_votes + 1> ahead;
    std::size_t count = 0;
    ahead[count++] = own;
    for (const auto& v : votes_) ahead[count++] = std::clamp(own, v.least, v.most);
    if (std::all_of(ahead.begin(), ahead.begin() + static_cast<std::ptrdiff_t>(count),
                    [own](auto one) { return one == own; }))
      return own_utc_ns;
    std::sort(ahead.begin(), ahead.begin() + static_cast<std::ptrdiff_t>(count));
    const auto upper = ahead[count / 2], lower = ahead[(count - 1) / 2];
    return now.count() + (own - lower <= upper - own ? lower : upper);
  }

private:
  static constexpr std::size_t most_votes = 15;
  static constexpr std::int64_t latest_utc_ns = std::int64_t{1} << 62;
  struct vote {
    node_id who;
    std::int64_t least = 0, most = 0; // UTC less our steady clock, ns
  };
  std::deque<vote> votes_; // the last heard of last
};

} // namespace shoal::actors
