// actors/pipeline/stage_wiring: peers of a stage get tasks in proportion to their rates.
#include "actors/pipeline/stage_wiring.hpp"
#include "kernels/base/rng.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <vector>

using namespace shoal;
using namespace shoal::actors;

namespace {

/// A wiring that has measured these rates of the peers 1, 2, ...
stage_wiring wiring_of(const std::vector<double>& rates) {
  stage_wiring out;
  for (std::size_t i = 0; i < rates.size(); ++i) {
    out.join(i + 1);
    out.measured(i + 1, 1 / rates[i], 1);
  }
  return out;
}

} // namespace

TEST_CASE("each peer's share of the tasks is its share of the rate with a lag of at most one") {
  auto random = stream(4, "rates");
  std::vector<std::vector<double>> swarms{{1}, {1, 1, 1}, {9, 1}, {90, 1, 1, 1, 1, 1, 1, 1, 1, 1}};
  for (int i = 0; i < 20; ++i) {
    std::vector<double> rates(2 + random.below(30));
    for (auto& rate : rates) rate = random.lognormal(0, 1);
    swarms.push_back(std::move(rates));
  }
  for (const auto& rates : swarms) {
    auto wiring = wiring_of(rates);
    const double sum = std::accumulate(rates.begin(), rates.end(), 0.0);
    std::vector<double> given(rates.size());
    double worst = 0;
    for (int task = 1; task <= 3000; ++task) {
      given[*wiring.choose(1) - 1] += 1;
      for (std::size_t i = 0; i < rates.size(); ++i)
        worst = std::max(worst, std::abs(given[i] - task * rates[i] / sum));
    }
    CHECK(worst <= 1 + 1e-6);
  }
}

TEST_CASE("a task counts by its size") {
  // Each second task is 2.5 times as large, as a backward pass is.
  auto wiring = wiring_of({3, 1});
  std::vector<double> given(2);
  double all = 0;
  for (int task = 0; task < 1000; ++task) {
    const double size = task % 2 == 0 ? 1 : 2.5;
    given[*wiring.choose(size) - 1] += size;
    all += size;
    CHECK(std::abs(given[0] - 0.75 * all) <= 2.5 + 1e-6);
  }
}

TEST_CASE("a newcomer gets work at once and no backlog") {
  auto wiring = wiring_of({1, 1});
  for (int i = 0; i < 100; ++i) wiring.choose(1);
  wiring.join(3);
  std::map<peer_id, int> given;
  for (int i = 0; i < 30; ++i) ++given[*wiring.choose(1)];
  // The newcomer has the mean rate of the others.
  for (peer_id peer = 1; peer <= 3; ++peer) CHECK(std::abs(given[peer] - 10) <= 1);
}

TEST_CASE("a peer that was left out for a while catches up on one task") {
  auto wiring = wiring_of({1, 1});
  for (int i = 0; i < 100; ++i) CHECK(wiring.choose(1, {2}) == 1);
  int in_a_row = 0;
  while (wiring.choose(1) == 2) ++in_a_row;
  CHECK(in_a_row <= 2);
}

TEST_CASE("shares follow rates that change") {
  auto wiring = wiring_of({1, 1});
  for (int i = 0; i < 10; ++i) wiring.choose(1);
  for (int i = 0; i < 200; ++i) wiring.measured(1, 1.0 / 4, 1);
  CHECK(wiring.rate(1) == doctest::Approx(4).epsilon(1e-6));
  int first = 0;
  for (int i = 0; i < 100; ++i) first += wiring.choose(1) == 1 ? 1 : 0;
  CHECK(std::abs(first - 80) <= 2);
}

TEST_CASE("a peer that claims to compute in no time does not get all tasks") {
  stage_wiring wiring;
  for (const peer_id peer : {1, 2, 3, 7}) wiring.join(peer);
  for (const peer_id peer : {1, 2, 3}) wiring.measured(peer, 1, 1);
  wiring.measured(7, 0, 1);
  CHECK(wiring.rate(7) == doctest::Approx(stage_wiring::most_lead));
  int honest = 0;
  for (int task = 0; task < 1310; ++task) honest += *wiring.choose(1) != 7 ? 1 : 0;
  CHECK(honest >= 29); // three of 131 parts
}

TEST_CASE("a wiring without a peer has nobody to choose") {
  stage_wiring wiring;
  CHECK(!wiring.choose(1));
  wiring.join(7);
  CHECK(!wiring.choose(1, {7}));
  CHECK(wiring.choose(1) == 7);
  wiring.leave(7);
  CHECK(!wiring.choose(1));
}
