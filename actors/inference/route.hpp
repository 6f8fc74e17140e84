// The choice of the servers that compute a range of a model's layers. A route is a sequence of hops
// that cover the range without gap or overlap.
//   fastest:  least sum over hops of (round_trip + penalty) + sum over layers of layer_seconds
//   weighted: the next server is drawn with a probability proportional to the layers that it has
//             left, and is used to the end of its span
// Source: Borzunov et al., arXiv:2209.01188, section 3.2.
#pragma once

#include "actors/ids.hpp"
#include "kernels/base/rng.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace shoal::actors {

/// The layers [first, last) of a model.
struct layer_span {
  std::uint32_t first = 0, last = 0;
  std::uint32_t count() const noexcept { return last - first; }
  auto operator<=>(const layer_span&) const = default;
};

/// A server as a client knows it.
struct server_view {
  peer_id peer = 0;
  layer_span layers;
  double round_trip = 0;        ///< seconds to the server and back
  double layer_seconds = 0;     ///< for one token through one layer
  std::uint64_t cache_left = 0; ///< tokens times layers
};

struct route_hop {
  peer_id server = 0;
  layer_span layers;
  bool operator==(const route_hop&) const = default;
};

/// Seconds that a server without enough cache costs: it is used only where no other one is left.
inline constexpr double short_cache_penalty = 10;

/// The fastest route through `range` for sequences of `tokens` tokens in all. Among routes of equal
/// time the one with the smaller peer ids, layer by layer from the end. Empty if some layer has no
/// server. Complexity: layers * servers.
std::vector<route_hop> fastest_route(std::span<const server_view> servers, layer_span range,
                                     std::uint64_t tokens);

/// A random route that spreads load. Empty if some layer has no server.
std::vector<route_hop> weighted_route(std::span<const server_view> servers, layer_span range,
                                      rng& random);

/// The first run of layers of `range` that no server has.
std::optional<layer_span> uncovered(std::span<const server_view> servers, layer_span range);

} // namespace shoal::actors
