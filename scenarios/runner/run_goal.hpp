// Detects that a training run has reached its last epoch. A plain state machine; the caller's clock
// gives the times. Thread safety: any thread may call reached(). The caller holds one lock during
// all other calls.
#pragma once

#include "kernels/base/units.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace shoal::scenarios {

class run_goal {
public:
  /// Starts a run. `planned` is the scenario's number of epochs, and `limit` an earlier end. 0
  /// means no end. `one_host` means that this process runs one host and sees no steps of other
  /// hosts.
  void begin(std::uint64_t planned, std::uint64_t limit, bool one_host) {
    planned_ = planned;
    epoch_ = planned == 0 ? limit : limit == 0 ? planned : std::min(planned, limit);
    one_host_ = one_host;
  }

  /// Returns the last epoch. 0: training has no end.
  std::uint64_t epoch() const noexcept { return epoch_; }
  bool reached() const noexcept { return reached_; }
  /// Returns the time at which the run reached its goal. Requires: reached().
  duration time() const noexcept { return time_; }

  // Each function below returns true once: when the run reaches its goal.

  /// A peer took a step to `epoch`.
  bool stepped(std::uint64_t epoch, duration now) {
    return epoch_ > 0 && epoch >= epoch_ && reach(now);
  }
  /// A host that missed the last step has downloaded the result, so no step of this host follows.
  bool adopted(std::uint64_t epoch, duration now) {
    return one_host_ && planned_ > 0 && epoch >= planned_ && reach(now);
  }
  /// The data shard has committed samples of the round at `epoch`. The shard's process sees no
  /// steps, so the commit of the last round takes their place.
  bool committed(std::uint64_t epoch, duration now) {
    return one_host_ && planned_ > 0 && epoch + 1 >= planned_ && reach(now);
  }
  /// All hosts left at time `when`.
  bool deserted(duration when) {
    if (!reach(when)) return false;
    return is_deserted_ = true;
  }
  /// True if the run ended because all other hosts had left.
  bool is_deserted() const noexcept { return is_deserted_; }

private:
  bool reach(duration when) {
    if (reached_) return false;
    time_ = when;
    return reached_ = true;
  }

  std::uint64_t planned_ = 0, epoch_ = 0;
  bool one_host_ = false;
  std::atomic<bool> reached_{false};
  bool is_deserted_ = false;
  duration time_{};
};

} // namespace shoal::scenarios
