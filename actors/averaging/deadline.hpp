// Adaptive timeouts, computed from the times that earlier waits took.
//
// adaptive_deadline, for waits that are alike:
//     timeout = mean + 4 deviations of the measured times, within [`least`, `most`]
// Before the first measurement it is `most`. Each wait that runs out doubles the next timeout, so
// that it adapts to peers that became slower.
//
// mean_deadline, for waits that differ, as those for hosts with queues of all lengths:
//     timeout = 5 times the mean of the measured times, at least `least`
//
// Source of the first one: the retransmission timer of TCP (Jacobson and Karels, SIGCOMM 1988; RFC
// 6298: gains 1/8 and 1/4).
#pragma once

#include "kernels/base/units.hpp"

#include <algorithm>
#include <cmath>

namespace shoal::actors {

class adaptive_deadline {
public:
  /// A `least` above `most` counts as `most`.
  adaptive_deadline(duration least, duration most) : least_(std::min(least, most)), most_(most) {}

  void measured(duration took) {
    const double x = to_seconds(took);
    if (!known_) {
      mean_ = x;
      deviation_ = x / 2;
      known_ = true;
    } else {
      deviation_ += (std::abs(x - mean_) - deviation_) / 4;
      mean_ += (x - mean_) / 8;
    }
    stretch_ = 1;
  }
  void ran_out() { stretch_ = std::min(stretch_ * 2, 64.0); }

  bool known() const noexcept { return known_; }
  duration value() const {
    if (!known_) return most_;
    return std::clamp(from_seconds(stretch_ * (mean_ + 4 * deviation_)), least_, most_);
  }

private:
  duration least_, most_;
  double mean_ = 0, deviation_ = 0, stretch_ = 1;
  bool known_ = false;
};

class mean_deadline {
public:
  explicit mean_deadline(duration least) : least_(least) {}

  void measured(duration took) { mean_ = mean_ == duration{} ? took : mean_ + (took - mean_) / 10; }
  duration value() const { return std::max(least_, 5 * mean_); }

private:
  duration least_, mean_{};
};

} // namespace shoal::actors
