// One statement that has to be true of every run: the number of checks, the number of violations,
// and the first violation.
#pragma once

#include "kernels/base/units.hpp"
#include "scenarios/observe/output_text.hpp"

#include <cstdint>
#include <string>

namespace shoal::scenarios {

struct invariant {
  std::uint64_t checked = 0;
  std::uint64_t violated = 0;
  std::string
      first_violation;   ///< with virtual time and name of the peer; empty if there is no violation
  duration first_time{}; ///< time of the first violation

  void check(std::uint64_t times = 1) noexcept { checked += times; }
  void violate(duration time, const std::string& text, std::uint64_t times = 1) {
    if (violated == 0) {
      first_violation = "at " + time_text(time) + ": " + text;
      first_time = time;
    }
    violated += times;
  }
};

} // namespace shoal::scenarios
