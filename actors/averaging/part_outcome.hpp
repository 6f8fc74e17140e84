// The senders of one part of an averaged vector, as a member holds it after the round.
#pragma once

#include <cstdint>
#include <vector>

namespace shoal::actors {

/// A part, or the stretch of a part that has the same senders.
struct part_outcome {
  std::uint64_t begin = 0, end = 0;   ///< value indices
  std::vector<std::uint32_t> senders; ///< members whose data is in it, ascending
  std::uint64_t weight = 0;           ///< the denominator that was used
  std::uint32_t part = 0;             ///< number of the part; one part may have several stretches
};

} // namespace shoal::actors
