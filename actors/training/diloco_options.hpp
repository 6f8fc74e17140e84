// The options of peers of DiLoCo (actors/training/diloco_peer.hpp).
#pragma once

#include "actors/averaging/round.hpp"
#include "kernels/base/units.hpp"

#include <cstdint>
#include <vector>

namespace shoal::actors {

struct diloco_options {
  std::uint64_t quorum = 0; ///< members that close a round after `grace`; 0: all that are expected
  duration grace{};
  std::vector<round_codecs> codecs{}; ///< by fragment
};

} // namespace shoal::actors
