#include "actors/inference/route.hpp"

#include <algorithm>
#include <limits>

namespace shoal::actors {

namespace {

constexpr double never = std::numeric_limits<double>::infinity();
constexpr std::size_t none = std::numeric_limits<std::size_t>::max();

bool has(const server_view& server, std::uint32_t layer) {
  return server.layers.first <= layer && layer < server.layers.last;
}

void append(std::vector<route_hop>& route, peer_id server, std::uint32_t layer) {
  if (!route.empty() && route.back().server == server && route.back().layers.last == layer)
    ++route.back().layers.last;
  else
    route.push_back({server, {layer, layer + 1}});
}

} // namespace

std::vector<route_hop> fastest_route(std::span<const server_view> servers, layer_span range,
                                     std::uint64_t tokens) {
  const auto n = servers.size();
  // time[s]: the best time after the current layer, if server s computed it.
  std::vector<double> time(n, never);
  std::vector<std::vector<std::size_t>> came_from; // by layer and server; none: it entered first
  double best = 0;
  std::size_t best_server = none;
  for (auto layer = range.first; layer < range.last; ++layer) {
    std::vector<double> next(n, never);
    std::vector<std::size_t> from(n, none);
    for (std::size_t s = 0; s < n; ++s) {
      if (!has(servers[s], layer)) continue;
      const auto rest = std::min(servers[s].layers.last, range.last) - layer;
      const double entry =
          servers[s].round_trip + (servers[s].cache_left < tokens * rest ? short_cache_penalty : 0);
      next[s] = best + entry;
      from[s] = best_server;
      if (time[s] <= next[s]) {
        next[s] = time[s];
        from[s] = s;
      }
      next[s] += servers[s].layer_seconds;
    }
    time = std::move(next);
    came_from.push_back(std::move(from));
    best = never;
    for (std::size_t s = 0; s < n; ++s)
      if (time[s] < best ||
          (time[s] == best && best < never && servers[s].peer < servers[best_server].peer)) {
        best = time[s];
        best_server = s;
      }
    if (best == never) return {};
  }
  std::vector<std::size_t> chosen(range.count());
  for (auto i = chosen.size(); i-- > 0;) {
    chosen[i] = best_server;
    best_server = came_from[i][best_server];
  }
  std::vector<route_hop> out;
  for (std::size_t i = 0; i < chosen.size(); ++i)
    append(out, servers[chosen[i]].peer, range.first + static_cast<std::uint32_t>(i));
  return out;
}

std::vector<route_hop> weighted_route(std::span<const server_view> servers, layer_span range,
                                      rng& random) {
  std::vector<route_hop> out;
  for (auto layer = range.first; layer < range.last;) {
    std::uint64_t all = 0;
    for (const auto& s : servers)
      if (has(s, layer)) all += s.layers.last - layer;
    if (all == 0) return {};
    auto drawn = random.below(all);
    for (const auto& s : servers) {
      if (!has(s, layer)) continue;
      const auto weight = s.layers.last - layer;
      if (drawn < weight) {
        const auto last = std::min(s.layers.last, range.last);
        out.push_back({s.peer, {layer, last}});
        layer = last;
        break;
      }
      drawn -= weight;
    }
  }
  return out;
}

std::optional<layer_span> uncovered(std::span<const server_view> servers, layer_span range) {
  const auto covered = [&](std::uint32_t layer) {
    return std::any_of(servers.begin(), servers.end(),
                       [&](const server_view& s) { return has(s, layer); });
  };
  for (auto layer = range.first; layer < range.last; ++layer) {
    if (covered(layer)) continue;
    layer_span out{layer, layer + 1};
    while (out.last < range.last && !covered(out.last)) ++out.last;
    return out;
  }
  return std::nullopt;
}

} // namespace shoal::actors
