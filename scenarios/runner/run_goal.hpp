// When a training run has reached its last epoch. A plain state machine; the times are the caller's
// clock. Thread safety: reached() may be asked by any thread; everything else under one lock of the
// caller's.
#pragma once

#include "kernels/base/units.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace shoal::scenarios {

class run_goal {
public:
  /// `planned`: epochs of the scenario; `limit`: an earlier end that the caller wants; 0: there is
  /// none. `one_host`: this process is one host of many, and sees nobody else's steps.
  void begin(std::uint64_t planned, std::uint64_t limit, bool one_host) {
    planned_ = planned;
    epoch_ = planned == 0 ? limit : limit == 0 ? planned : std::min(planned, limit);
    one_host_ = one_host;
  }

  /// The last epoch; 0: training has no end.
  std::uint64_t epoch() const noexcept { return epoch_; }
  bool reached() const noexcept { return reached_; }
  /// Requires: reached().
  duration time() const noexcept { return time_; }

  // Each of these returns whether the run has now reached its goal, for the first time.

  /// A peer took a step to `epoch`.
  bool stepped(std::uint64_t epoch, duration now) {
    return epoch_ > 0 && epoch >= epoch_ && reach(now);
  }
  /// A host that was late for the last step has downloaded its result, and nobody will step with
  /// it.
  bool adopted(std::uint64_t epoch, duration now) {
    return one_host_ && planned_ > 0 && epoch >= planned_ && reach(now);
  }
  /// The data shard has committed samples of the round at `epoch`. Its process sees no steps: the
  /// commit of the last round is as good.
  bool committed(std::uint64_t epoch, duration now) {
    return one_host_ && planned_ > 0 && epoch + 1 >= planned_ && reach(now);
  }
  /// Everybody has left, since `when`.
  bool deserted(duration when) { return reach(when); }

private:
  bool reach(duration when) {
    if (reached_) return false;
    time_ = when;
    return reached_ = true;
  }

  std::uint64_t planned_ = 0, epoch_ = 0;
  bool one_host_ = false;
  std::atomic<bool> reached_{false};
  duration time_{};
};

} // namespace shoal::scenarios
