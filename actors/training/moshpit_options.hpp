// The options of peers that average parameters (actors/training/moshpit_peer.hpp).
#pragma once

#include "kernels/mixing.hpp"

#include <cstdint>

namespace shoal::actors {

struct moshpit_options {
  bool local_batch = false;      ///< a round is due with target_batch, not with local_steps
  std::uint64_t local_steps = 8; ///< of each peer between two rounds, on average over the swarm
  kernels::grid grid;
  std::uint64_t max_staleness = 4; ///< a peer whose last average is more rounds old downloads
  bool average_optimizer = false;  ///< the optimizer's state, too
};

} // namespace shoal::actors
