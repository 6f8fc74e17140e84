// Shares an access line among links. Bulk frames wait, and go out one at a time to each link in
// turn, a little slower than the line. So no queue forms in which small messages would wait.
#pragma once

#include "kernels/base/units.hpp"
#include "netem/wire/host_link.hpp"

#include <memory>
#include <optional>
#include <vector>

namespace shoal::netem::wire {

/// The share of the line for bulk. Headers, acknowledgements and small messages need the rest.
inline constexpr double paced_share = 0.94;

/// Thread safety: none; the local host's lock guards it.
class pacer {
public:
  /// `uplink`: bits per second; 0: no pacing.
  explicit pacer(double uplink) : uplink_(uplink) {}

  bool paces() const noexcept { return uplink_ > 0; }
  /// Sends a frame, or queues it.
  void put(host_link& to, bool bulk, frame what, duration now);
  /// Sends the frames that are due, and rotates `links`. If frames remain, returns the time to call
  /// turn_came() and then this function again.
  std::optional<duration> pump(std::vector<std::shared_ptr<host_link>>& links, duration now);
  void turn_came() noexcept { planned_ = false; }

private:
  const double uplink_;
  duration line_free_{}; // when the next frame may be sent
  bool planned_ = false;
};

} // namespace shoal::netem::wire
