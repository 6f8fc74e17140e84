// Shares an access line among links: bulk waits, and goes out a piece at a time, to each link in
// turn, a little slower than the line. So no queue forms in which small messages would wait.
#pragma once

#include "kernels/base/units.hpp"
#include "netem/wire/host_link.hpp"

#include <memory>
#include <optional>
#include <vector>

namespace shoal::netem::wire {

/// The share of the line that bulk may have. Headers, acknowledgements and small messages need the
/// rest.
inline constexpr double paced_share = 0.94;

/// Thread safety: none; the station's lock guards it.
class pacer {
public:
  /// `uplink`: bits per second; 0: nothing is paced.
  explicit pacer(double uplink) : uplink_(uplink) {}

  bool paces() const noexcept { return uplink_ > 0; }
  /// Sends a frame, or has it wait for its turn.
  void put(host_link& to, bool bulk, frame what, duration now);
  /// Sends what is due, and reorders `links`. If more waits, the answer is when to call turn_came()
  /// and then this again.
  std::optional<duration> pump(std::vector<std::shared_ptr<host_link>>& links, duration now);
  void turn_came() noexcept { planned_ = false; }

private:
  const double uplink_;
  duration line_free_{}; // when the next piece may be sent
  bool planned_ = false;
};

} // namespace shoal::netem::wire
