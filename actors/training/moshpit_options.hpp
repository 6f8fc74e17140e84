// The options of peers that average parameters (actors/training/moshpit_peer.hpp).
#pragma once

#include "kernels/mixing.hpp"

#include <cstdint>

namespace shoal::actors {

struct moshpit_options {
  bool local_batch = false; ///< a round is due after target_batch samples, not after local_steps
  std::uint64_t local_steps = 8; ///< steps of a peer between two rounds, averaged over the swarm
  kernels::grid grid;
  std::uint64_t max_staleness =
      4; ///< a peer with an older last average, in rounds, downloads a state
  bool average_optimizer = false; ///< true: rounds average the optimizer's state, too
};

} // namespace shoal::actors
