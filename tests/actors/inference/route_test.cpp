#include "actors/inference/route.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <set>

using namespace shoal;
using namespace shoal::actors;

namespace {

server_view server(peer_id peer, std::uint32_t first, std::uint32_t last, double round_trip,
                   double layer_seconds, std::uint64_t cache = 1000) {
  return {peer, {first, last}, round_trip, layer_seconds, cache};
}

const server_view& view_of(const std::vector<server_view>& servers, peer_id peer) {
  return *std::find_if(servers.begin(), servers.end(),
                       [&](const server_view& s) { return s.peer == peer; });
}

double seconds_of(const std::vector<server_view>& servers, const std::vector<route_hop>& route,
                  layer_span range, std::uint64_t tokens) {
  double out = 0;
  for (const auto& hop : route) {
    const auto& s = view_of(servers, hop.server);
    const auto rest = std::min(s.layers.last, range.last) - hop.layers.first;
    out += s.round_trip + s.layer_seconds * hop.layers.count();
    if (s.cache_left < tokens * rest) out += short_cache_penalty;
  }
  return out;
}

/// The least time of all assignments of layers to servers.
double brute_force(const std::vector<server_view>& servers, layer_span range,
                   std::uint64_t tokens) {
  double best = std::numeric_limits<double>::infinity();
  std::vector<std::size_t> chosen(range.count());
  for (;;) {
    bool fits = true;
    std::vector<route_hop> route;
    for (std::size_t i = 0; i < chosen.size() && fits; ++i) {
      const auto& s = servers[chosen[i]];
      const auto layer = range.first + static_cast<std::uint32_t>(i);
      fits = s.layers.first <= layer && layer < s.layers.last;
      if (i > 0 && chosen[i] == chosen[i - 1])
        ++route.back().layers.last;
      else
        route.push_back({s.peer, {layer, layer + 1}});
    }
    if (fits) best = std::min(best, seconds_of(servers, route, range, tokens));
    std::size_t i = 0;
    while (i < chosen.size() && ++chosen[i] == servers.size()) chosen[i++] = 0;
    if (i == chosen.size()) return best;
  }
}

bool covers(const std::vector<route_hop>& route, layer_span range,
            const std::vector<server_view>& servers) {
  auto at = range.first;
  for (const auto& hop : route) {
    const auto& s = view_of(servers, hop.server).layers;
    if (hop.layers.first != at || hop.layers.first < s.first || hop.layers.last > s.last)
      return false;
    at = hop.layers.last;
  }
  return at == range.last;
}

} // namespace

TEST_CASE("the fastest route has the least time of all assignments in 300 random swarms") {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    auto random = stream(seed, "swarm");
    std::vector<server_view> servers;
    for (peer_id peer = 1; peer <= 5; ++peer) {
      const auto first = static_cast<std::uint32_t>(random.below(5));
      const auto last = first + 1 + static_cast<std::uint32_t>(random.below(5 - first));
      servers.push_back(server(peer, first, last, random.uniform(0, 0.3), random.uniform(0, 0.1),
                               random.below(2) * 1000));
    }
    const layer_span range{0, 5};
    const auto route = fastest_route(servers, range, 10);
    CHECK(route.empty() == uncovered(servers, range).has_value());
    if (route.empty()) continue;
    CHECK(covers(route, range, servers));
    CHECK(seconds_of(servers, route, range, 10) ==
          doctest::Approx(brute_force(servers, range, 10)));
  }
}

TEST_CASE("a route prefers one near server of all layers to two far ones") {
  const std::vector<server_view> servers{server(1, 0, 2, 0.1, 0.01), server(2, 2, 4, 0.1, 0.01),
                                         server(3, 0, 4, 0.1, 0.03)};
  CHECK(fastest_route(servers, {0, 4}, 1) == std::vector<route_hop>{{3, {0, 4}}});
  CHECK(fastest_route(servers, {1, 2}, 1) == std::vector<route_hop>{{1, {1, 2}}});
}

TEST_CASE("a server without enough cache is used only where no other one is left") {
  std::vector<server_view> servers{server(1, 0, 2, 0.01, 0.01, 1), server(2, 0, 2, 0.5, 0.1)};
  CHECK(fastest_route(servers, {0, 2}, 2) == std::vector<route_hop>{{2, {0, 2}}});
  // With cache for one layer of two it gets one.
  servers[0].cache_left = 3;
  CHECK(fastest_route(servers, {0, 2}, 2) == std::vector<route_hop>{{2, {0, 1}}, {1, {1, 2}}});
  servers.pop_back();
  CHECK(fastest_route(servers, {0, 2}, 2) == std::vector<route_hop>{{1, {0, 2}}});
}

TEST_CASE("layers that no server has are named") {
  const std::vector<server_view> servers{server(1, 0, 1, 0, 0), server(2, 3, 4, 0, 0)};
  CHECK(uncovered(servers, {0, 4}) == layer_span{1, 3});
  CHECK(!uncovered(servers, {3, 4}));
  CHECK(fastest_route(servers, {0, 4}, 1).empty());
  auto random = stream(1, "draws");
  CHECK(weighted_route(servers, {0, 4}, random).empty());
}

TEST_CASE("a random route draws servers in proportion to the layers that they have left") {
  const std::vector<server_view> servers{server(1, 0, 3, 0, 0), server(2, 0, 1, 0, 0),
                                         server(3, 1, 3, 0, 0)};
  auto random = stream(2, "draws");
  int long_first = 0;
  constexpr int draws = 4000;
  for (int i = 0; i < draws; ++i) {
    const auto route = weighted_route(servers, {0, 3}, random);
    REQUIRE(covers(route, {0, 3}, servers));
    long_first += route.front().server == 1 ? 1 : 0;
  }
  CHECK(long_first == doctest::Approx(draws * 0.75).epsilon(0.05));
}
