// Limits on the trouble that one member can make at a data shard. Each member has a budget of each
// kind. A budget is full at first, and an empty one is full again after `refill_time`. Honest
// members stay far below the limits. A plain state machine.
#pragma once

#include "actors/ids.hpp"
#include "kernels/base/units.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>

namespace shoal::actors {

class member_budgets {
public:
  enum kind : std::size_t {
    wasted,   ///< samples that were sent and then returned, or whose lease ended
    claimed,  ///< samples that the member says another primary leased
    reported, ///< ranges that the member's commits made the shard report
    copied    ///< samples that the member asked copies of
  };
  struct limits {
    std::array<std::uint64_t, 4> most{}; ///< by kind
    duration refill_time{};
  };

  explicit member_budgets(limits of) : limits_(of) {}

  /// The rest of a budget.
  std::uint64_t left(member_id who, kind what, duration now) const {
    const auto found = spent_.find(who);
    const auto spent = found == spent_.end() ? 0 : at(found->second, what, now);
    return limits_.most[what] - std::min(limits_.most[what], spent);
  }
  /// Takes `amount` from a budget. It may take more than the rest; the budget then needs longer.
  void take(member_id who, kind what, std::uint64_t amount, duration now) {
    if (amount == 0) return;
    auto& mine = spent_[who];
    for (std::size_t each = 0; each < mine.amount.size(); ++each)
      mine.amount[each] = at(mine, static_cast<kind>(each), now);
    mine.since = now;
    mine.amount[what] += std::min(amount, 2 * limits_.most[what]);
  }

private:
  struct spending {
    std::array<std::uint64_t, 4> amount{};
    duration since{};
  };

  std::uint64_t at(const spending& of, kind what, duration now) const {
    const auto passed = to_seconds(now - of.since) / to_seconds(limits_.refill_time);
    const auto back = static_cast<double>(limits_.most[what]) * passed;
    const auto spent = of.amount[what];
    return back >= static_cast<double>(spent) ? 0 : spent - static_cast<std::uint64_t>(back);
  }

  limits limits_;
  std::map<member_id, spending> spent_;
};

} // namespace shoal::actors
