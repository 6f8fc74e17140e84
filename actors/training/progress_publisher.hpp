// Decides when a peer publishes its progress record and when it reads those of the others. A plain
// state machine.
//
// A record is published when it has changed, and again after a third of its lifetime. The next
// reading is due after half of the expected time until the next round, to notice changes of speed
// and losses in time. It lies within [min_refresh, max_refresh]. A peer that waits for a round or a
// download reads again after half of the time that it has waited.
#pragma once

#include "actors/training/progress.hpp"

#include <cstdint>

namespace shoal::actors {

struct progress_timing {
  duration min_refresh = std::chrono::milliseconds(200);
  duration max_refresh = std::chrono::seconds(5);
  duration record_lifetime = std::chrono::seconds(15);
};

class progress_publisher {
public:
  explicit progress_publisher(progress_timing timing) : timing_(timing) {}

  // Publishing.
  /// True if `mine` is to be published now; it then counts as published. `mine` must not say how
  /// long the peer computes, because a change of that alone is no news.
  bool is_news(const progress& mine, duration now);
  /// True if the last record is old enough to publish another one out of turn.
  bool may_announce(duration now) const { return now - published_at_ >= timing_.min_refresh; }

  // Reading.
  /// The facts that determine the time of the next reading.
  struct outlook {
    bool busy = false; ///< in a round or a download, which may be stuck
    duration busy_for{};
    double missing_samples = 0;    ///< samples missing until the next round
    double samples_per_second = 0; ///< speed of the whole swarm
    bool heard = false;            ///< records were read at least once
  };
  duration next_refresh(const outlook& what) const;
  /// Plans the next reading after `wait`, and returns the name of its timer. Timers with other
  /// names are out of date.
  std::uint64_t plan(duration wait, duration now) {
    due_ = now + wait;
    return ++timer_;
  }
  bool is_due(std::uint64_t timer) const noexcept { return timer == timer_; }
  /// True if a reading after `wait` would come before the planned one.
  bool sooner(duration wait, duration now) const { return now + wait < due_; }

private:
  progress_timing timing_;
  payload published_; // the last record
  duration published_at_{-1};
  duration due_{};
  std::uint64_t timer_ = 0;
};

} // namespace shoal::actors
