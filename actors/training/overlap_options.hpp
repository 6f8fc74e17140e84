// Whether a peer of the synchronous method computes while the swarm averages
// (actors/training/delayed_peer.hpp).
#pragma once

#include <array>
#include <cstdint>
#include <utility>

namespace shoal::actors {

/// The work that overlaps with computing the next batch. Its gradients are then one step old.
enum class overlap : std::uint8_t {
  none,
  update,    ///< the optimizer's step (delayed parameter updates)
  averaging, ///< the averaging round, too (delayed gradient averaging)
};

constexpr auto names_of(overlap) {
  return std::array{std::pair{overlap::none, "none"}, std::pair{overlap::update, "update"},
                    std::pair{overlap::averaging, "averaging"}};
}

struct overlap_options {
  actors::overlap overlap = overlap::none;
};

} // namespace shoal::actors
