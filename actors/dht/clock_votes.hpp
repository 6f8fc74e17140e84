// The time by the clocks of most nodes. A node uses it to decide which records have expired. So a
// host with a wrong clock neither hides live records nor keeps expired ones.
//
// Each answer of a node carries its UTC. That UTC was read between question and answer, by this
// node's steady clock. So the difference of the two clocks lies in an interval: a vote. A vote
// counts as the value of its interval that is nearest to this node's own clock, which is one more
// vote. The result is the median. If two values are in the middle, the one nearer to the own clock
// is taken, so a node believes itself against one other node. Network delays therefore never move a
// right clock, and a minority of false answers moves none. A member has one vote, however many
// nodes and incarnations it shows.
//
// Source: Marzullo and Owicki, "Maintaining the Time in a Distributed System", PODC 1983, for votes
// that are intervals.
#pragma once

#include "actors/ids.hpp"
#include "kernels/base/units.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>

namespace shoal::actors {

class clock_votes {
public:
  /// Takes the report `utc_ns` of a member's node. The question was sent at `asked` and answered at
  /// `answered`, by the steady clock. The last vote of a member replaces its earlier one. Reports
  /// before 1970 or after 2116 are ignored.
  void told(const member_id& who, std::int64_t utc_ns, duration asked, duration answered) {
    if (utc_ns < 0 || utc_ns > latest_utc_ns) return;
    std::erase_if(votes_, [&](const vote& v) { return v.who == who; });
    votes_.push_back({who, utc_ns - answered.count(), utc_ns - asked.count()});
    if (votes_.size() > most_votes) votes_.pop_front();
  }

  /// The UTC by the clocks of most nodes. `own_utc_ns` is this host's own.
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
    member_id who;
    std::int64_t least = 0, most = 0; // UTC minus this node's steady clock, ns
  };
  std::deque<vote> votes_; // the latest vote is last
};

} // namespace shoal::actors
