#include "actors/inference/placement.hpp"
#include "kernels/base/rng.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

using namespace shoal;
using namespace shoal::actors;

namespace {

using servers = std::vector<placed_server>;

double weakest_rate(const servers& all, std::uint32_t layers) {
  const auto rates = layer_rates(all, layers);
  return *std::min_element(rates.begin(), rates.end());
}

/// The best rate of the weakest layer, over all placements of these servers.
double best_placement(servers all, std::uint32_t layers) {
  double best = 0;
  const std::function<void(std::size_t)> place = [&](std::size_t i) {
    if (i == all.size()) {
      best = std::max(best, weakest_rate(all, layers));
      return;
    }
    const auto count = all[i].layers.count();
    for (std::uint32_t first = 0; first + count <= layers; ++first) {
      all[i].layers = {first, first + count};
      place(i + 1);
    }
  };
  place(0);
  return best;
}

} // namespace

TEST_CASE("placement: a new server takes the window that brute force finds weakest") {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    auto random = stream(seed, "placement");
    const auto layers = static_cast<std::uint32_t>(3 + random.below(8));
    servers all;
    for (std::uint64_t i = 0; i < random.below(6); ++i) {
      const auto count = static_cast<std::uint32_t>(1 + random.below(layers));
      const auto first = static_cast<std::uint32_t>(random.below(layers - count + 1));
      all.push_back({i + 1, {first, first + count}, 1 + static_cast<double>(random.below(4))});
    }
    const auto count = static_cast<std::uint32_t>(1 + random.below(layers));
    const auto chosen = weakest_window(all, layers, count);
    REQUIRE(chosen.count() == count);
    REQUIRE(chosen.last <= layers);
    const auto rates = layer_rates(all, layers);
    const auto sorted = [&](std::uint32_t first) {
      std::vector<double> out(rates.begin() + first, rates.begin() + first + count);
      std::sort(out.begin(), out.end());
      return out;
    };
    for (std::uint32_t first = 0; first + count <= layers; ++first) {
      CHECK(!(sorted(first) < sorted(chosen.first)));
      if (first < chosen.first) CHECK(sorted(first) != sorted(chosen.first));
    }
  }
}

TEST_CASE("placement: servers that join and rebalance come near the best placement of all") {
  double joined = 0, balanced = 0, least = 1;
  int swarms = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    auto random = stream(seed, "placement_small");
    const std::uint32_t layers = 6;
    servers all;
    for (std::uint64_t i = 0; i < 5; ++i) {
      const auto count = static_cast<std::uint32_t>(2 + random.below(3));
      all.push_back(
          {i + 1, weakest_window(all, layers, count), 1 + static_cast<double>(random.below(3))});
    }
    const double best = best_placement(all, layers);
    const double first = weakest_rate(all, layers);
    for (int turn = 0; turn < 10; ++turn)
      for (auto& each : all)
        if (const auto to = better_window(all, layers, each.peer, random)) each.layers = *to;
    const double last = weakest_rate(all, layers);
    CHECK(last >= first);
    joined += first / best;
    balanced += last / best;
    least = std::min(least, last / best);
    ++swarms;
  }
  MESSAGE("of the best: ", joined / swarms, " after joining, ", balanced / swarms,
          " after rebalancing, ", least, " at least");
  CHECK(balanced >= joined);
  CHECK(balanced / swarms > 0.7);
}

TEST_CASE("placement: churn over 1000 seeds leaves no layer that rebalancing took away") {
  const std::uint32_t layers = 24, count = 6;
  const std::size_t many = 16;
  // The optimum of n equal servers: each layer has floor(n count / layers) of them.
  const auto optimum = [&](std::size_t n) {
    return static_cast<double>(n * count / layers) / count;
  };
  double without = 0, with = 0;
  std::size_t events = 0;
  std::uint64_t cut_by_moves = 0, moves = 0;
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    auto random = stream(seed, "placement_churn");
    servers still, moving;
    peer_id next = 1;
    const auto join = [&](servers& all) {
      all.push_back({next++, weakest_window(all, layers, count), 1});
    };
    for (std::size_t i = 0; i < many; ++i) {
      join(still);
      join(moving);
    }
    for (int event = 0; event < 20; ++event) {
      // One server leaves, and half of the time nobody comes for a while.
      const auto gone = static_cast<std::ptrdiff_t>(random.below(still.size()));
      const auto back = random.below(2) == 0 || still.size() < many - 4;
      for (auto* all : {&still, &moving}) {
        all->erase(all->begin() + gone);
        while (back && all->size() < many) join(*all);
      }
      const double before = weakest_rate(moving, layers);
      for (auto& each : moving)
        if (const auto to = better_window(moving, layers, each.peer, random)) {
          each.layers = *to;
          ++moves;
        }
      if (before > 0 && weakest_rate(moving, layers) <= 0) ++cut_by_moves;
      without += weakest_rate(still, layers) / optimum(still.size());
      with += weakest_rate(moving, layers) / optimum(moving.size());
      ++events;
    }
  }
  const auto of = static_cast<double>(events);
  MESSAGE("weakest layer of the optimum: ", without / of, " without rebalancing, ", with / of,
          " with it, ", moves, " moves");
  CHECK(cut_by_moves == 0);
  CHECK(moves > 0);
  CHECK(with > without);
  CHECK(with / of > 0.8);
}
