// The choice of the layers that a server holds. A plain state machine.
//   rate[l] = sum, over the servers that hold layer l, of tokens a second through one layer /
//   layers
//             that the server holds
//   join:      the window whose sorted rates are least, so that the weakest layers come first
//   rebalance: the server leaves its window in thought, and every server moves in turn to its best
//              window, until none moves. The server moves if the weakest layer gains enough by it,
//              and if no layer is left without a server.
// Source: Borzunov et al., arXiv:2209.01188, section 3.2, and arXiv:2312.08361, appendix D.
#pragma once

#include "actors/inference/route.hpp"
#include "kernels/base/rng.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace shoal::actors {

/// A server as placement sees it.
struct placed_server {
  peer_id peer = 0;
  layer_span layers;
  double speed = 1; ///< tokens a second through one layer
};

/// The rate of each layer of a model with `layers` layers.
std::vector<double> layer_rates(std::span<const placed_server> servers, std::uint32_t layers);

/// The window for a new server with `count` layers. Among equal windows the first one. Requires: 0
/// < count <= layers.
layer_span weakest_window(std::span<const placed_server> servers, std::uint32_t layers,
                          std::uint32_t count);

/// The window to which server `self` should move, or empty if it should stay. It moves only where
/// the weakest layer's rate is then more than 1 / `quality` of the one now. `random` orders the
/// moves that the server imagines of the others. Requires: `self` is in `servers`.
std::optional<layer_span> better_window(std::span<const placed_server> servers,
                                        std::uint32_t layers, peer_id self, rng& random,
                                        double quality = 0.75);

} // namespace shoal::actors
