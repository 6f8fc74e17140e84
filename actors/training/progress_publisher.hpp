// When a peer publishes its progress record and reads those of the others. A plain state machine.
//   A record is published when it says something new, and again when a third of its lifetime is
//   over. The next reading is due after half of the expected time until the next round, between
//   min_refresh and max_refresh: changes of speed and losses are then known in time. A peer that
//   waits for a round or a download reads again after half of the time it has waited.
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
  /// Whether `mine` is to be published now; if so, it counts as published. How long the peer goes
  /// on computing is no news by itself, so `mine` must not say it.
  bool is_news(const progress& mine, duration now);
  /// Whether the last record is old enough for one that is published out of turn.
  bool may_announce(duration now) const { return now - published_at_ >= timing_.min_refresh; }

  // Reading.
  /// The facts that set the time of the next reading.
  struct outlook {
    bool busy = false; ///< with a round or a download; it may have got stuck
    duration busy_for{};
    double missing_samples = 0;    ///< until the next round
    double samples_per_second = 0; ///< of the whole swarm
    bool heard = false;            ///< records were read at least once
  };
  duration next_refresh(const outlook& what) const;
  /// The next refresh is due after `wait`; returns the name of its timer. Timers with other names
  /// are out of date.
  std::uint64_t plan(duration wait, duration now) {
    due_ = now + wait;
    return ++timer_;
  }
  bool is_due(std::uint64_t timer) const noexcept { return timer == timer_; }
  /// Whether a refresh after `wait` would come before the planned one.
  bool sooner(duration wait, duration now) const { return now + wait < due_; }

private:
  progress_timing timing_;
  payload published_; // the last record
  duration published_at_{-1};
  duration due_{};
  std::uint64_t timer_ = 0;
};

} // namespace shoal::actors
