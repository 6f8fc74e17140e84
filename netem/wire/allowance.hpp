// A budget that refills with time: it allows `most` at once, and `most` more in each period.
#pragma once

#include "kernels/base/units.hpp"

#include <algorithm>

namespace shoal::netem::wire {

/// Thread safety: none.
class allowance {
public:
  allowance(double most, duration period) : most_(most), period_(period), left_(most) {}

  /// Takes `count` from the budget. Returns false, and takes nothing, if less is left.
  bool take(double count, duration now) {
    refill(now);
    if (count > left_) return false;
    left_ -= count;
    return true;
  }
  /// True if nothing is missing from the budget.
  bool is_full(duration now) const { return left_at(now) >= most_; }

private:
  double left_at(duration now) const {
    if (now <= since_) return left_;
    return std::min(most_, left_ + most_ * to_seconds(now - since_) / to_seconds(period_));
  }
  void refill(duration now) {
    left_ = left_at(now);
    since_ = std::max(since_, now);
  }

  double most_;
  duration period_;
  double left_;
  duration since_{};
};

} // namespace shoal::netem::wire
