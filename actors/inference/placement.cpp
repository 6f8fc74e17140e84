#include "actors/inference/placement.hpp"

#include "kernels/base/check.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace shoal::actors {

namespace {

constexpr double margin = 1e-3;        // a server does not move for a smaller gain
constexpr std::size_t most_turns = 20; // a server imagines no more turns of the others

void add(std::vector<double>& rates, const placed_server& server, double sign) {
  for (auto l = server.layers.first; l < server.layers.last && l < rates.size(); ++l)
    rates[l] += sign * server.speed / server.layers.count();
}

std::vector<double> sorted_window(const std::vector<double>& rates, std::uint32_t first,
                                  std::uint32_t count) {
  std::vector<double> out(rates.begin() + first, rates.begin() + first + count);
  std::sort(out.begin(), out.end());
  return out;
}

layer_span weakest(const std::vector<double>& rates, std::uint32_t count) {
  const auto layers = static_cast<std::uint32_t>(rates.size());
  std::uint32_t best = 0;
  auto least = sorted_window(rates, 0, count);
  for (std::uint32_t first = 1; first + count <= layers; ++first) {
    auto here = sorted_window(rates, first, count);
    if (here < least) {
      least = std::move(here);
      best = first;
    }
  }
  return {best, best + count};
}

double least_of(const std::vector<double>& rates) {
  return *std::min_element(rates.begin(), rates.end());
}

} // namespace

std::vector<double> layer_rates(std::span<const placed_server> servers, std::uint32_t layers) {
  // The sum has a fixed order, so that all servers that know the same records decide the same.
  std::vector<placed_server> ordered(servers.begin(), servers.end());
  std::sort(ordered.begin(), ordered.end(),
            [](const auto& a, const auto& b) { return a.peer < b.peer; });
  std::vector<double> out(layers);
  for (const auto& each : ordered) add(out, each, 1);
  return out;
}

layer_span weakest_window(std::span<const placed_server> servers, std::uint32_t layers,
                          std::uint32_t count) {
  SHOAL_CHECK(count > 0 && count <= layers, "a server holds layers of the model");
  return weakest(layer_rates(servers, layers), count);
}

std::optional<layer_span> better_window(std::span<const placed_server> servers,
                                        std::uint32_t layers, peer_id self, rng& random,
                                        double quality) {
  std::vector<placed_server> imagined(servers.begin(), servers.end());
  std::sort(imagined.begin(), imagined.end(),
            [](const auto& a, const auto& b) { return a.peer < b.peer; });
  const auto me = std::find_if(imagined.begin(), imagined.end(),
                               [&](const placed_server& each) { return each.peer == self; });
  SHOAL_CHECK(me != imagined.end(), "the server knows itself");
  const double now = least_of(layer_rates(servers, layers));
  // Moves one server in thought. False if it stays.
  const auto move = [&](placed_server& one) {
    auto rates = layer_rates(imagined, layers);
    // A little more than its share goes, so that a window with equal rates does not look better.
    add(rates, one, -(1 + margin));
    const auto best = weakest(rates, one.layers.count());
    if (best == one.layers) return false;
    const double before = least_of(layer_rates(imagined, layers));
    const auto was = std::exchange(one.layers, best);
    if (least_of(layer_rates(imagined, layers)) < before) { // the move would weaken the swarm
      one.layers = was;
      return false;
    }
    return true;
  };
  // The layers that nobody else holds: the server must not leave them.
  std::vector<placed_server> others;
  for (const auto& each : imagined)
    if (each.peer != self) others.push_back(each);
  const auto without = layer_rates(others, layers);
  const auto mine = me->layers;
  for (auto l = mine.first; l < mine.last; ++l)
    if (without[l] <= 0) return std::nullopt;
  if (!move(*me)) return std::nullopt;
  const auto target = me->layers;
  std::vector<std::size_t> order(imagined.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  bool moved = true;
  for (std::size_t turn = 0; moved && turn < most_turns; ++turn) {
    moved = false;
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
    for (const auto i : order) moved = move(imagined[i]) || moved;
  }
  const double then = least_of(layer_rates(imagined, layers));
  if (then < now || now > (quality - margin) * then) return std::nullopt;
  return target;
}

} // namespace shoal::actors
