// How long others wait for one that may be late on purpose. A delay halves the next wait, down to
// an eighth, and an arrival in time doubles it again. So one member cannot hold others up for long
// more than a few times. No actor and no clock.
#pragma once

#include "kernels/base/units.hpp"

#include <algorithm>

namespace shoal::actors {

class patience {
public:
  /// `most`: the wait for one that has missed nothing.
  duration wait(duration most) const { return most / (1U << halvings_); }
  void missed() { halvings_ = std::min(halvings_ + 1, most_halvings); }
  void kept() { halvings_ -= halvings_ > 0 ? 1U : 0U; }

private:
  static constexpr unsigned most_halvings = 3;

  unsigned halvings_ = 0;
};

} // namespace shoal::actors
