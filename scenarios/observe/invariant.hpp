// One thing that has to be true of every run: how often it was looked at, how often it was not
// true, and the first time it was not.
#pragma once

#include "kernels/base/units.hpp"
#include "scenarios/observe/text.hpp"

#include <cstdint>
#include <string>

namespace shoal::scenarios {

struct invariant {
  std::uint64_t checked = 0;
  std::uint64_t violated = 0;
  std::string first_violation; ///< with virtual time and who; empty if there is none

  void check(std::uint64_t times = 1) noexcept { checked += times; }
  void violate(duration time, const std::string& text, std::uint64_t times = 1) {
    if (violated == 0) first_violation = "at " + time_text(time) + ": " + text;
    violated += times;
  }
};

} // namespace shoal::scenarios
