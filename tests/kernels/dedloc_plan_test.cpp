#include "kernels/base/rng.hpp"
#include "kernels/dedloc_plan.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

using namespace shoal;
using namespace shoal::kernels;

namespace {

using peers = std::vector<dedloc_peer>;

double log_uniform(rng& random, double low, double decades) {
  return low * std::pow(10, decades * random.uniform());
}

peers random_swarm(rng& random, std::size_t most) {
  peers out(2 + random.below(most - 1));
  for (auto& peer : out) {
    peer = {log_uniform(random, 1, 2), log_uniform(random, 1e6, 2), log_uniform(random, 1e6, 2),
            true, random.below(4) != 0};
    if (random.below(6) == 0) peer.samples_per_second = 0;
  }
  out[0].reduces = true;
  out[0].samples_per_second = 10;
  return out;
}

std::vector<averaging_peer> reduced(const peers& all, const std::vector<bool>& computes) {
  std::vector<averaging_peer> out;
  for (std::size_t i = 0; i < all.size(); ++i)
    out.push_back({all[i].up, all[i].down, computes[i], all[i].receives, all[i].reduces});
  return out;
}

void check_feasible(const peers& all, const std::vector<pair_limit>& limits, double bits,
                    const dedloc_plan& plan) {
  const auto n = all.size();
  const auto a = [&](std::size_t i, std::size_t j) { return plan.values[i * n + j]; };
  const auto g = [&](std::size_t i, std::size_t j) { return plan.results[i * n + j]; };
  for (std::size_t i = 0; i < n; ++i) {
    double up = 0, down = 0, got = 0;
    for (std::size_t j = 0; j < n; ++j) {
      got += g(j, i);
      if (i == j) continue;
      up += a(i, j) + g(i, j);
      down += a(j, i) + g(j, i);
      for (std::size_t k = 0; k < n; ++k)
        if (k != i && plan.computes[k])
          REQUIRE(g(i, j) <= a(k, i) + 1e-6 * bits * plan.averaging_steps_per_second);
      REQUIRE((plan.computes[i] || a(i, j) == 0));
      REQUIRE((all[i].reduces || g(i, j) == 0));
    }
    REQUIRE(up <= all[i].up * (1 + 1e-6));
    REQUIRE(down <= all[i].down * (1 + 1e-6));
    if (all[i].receives) REQUIRE(got >= plan.averaging_steps_per_second * bits * (1 - 1e-6));
  }
  for (const auto& [from, to, rate] : limits)
    REQUIRE(a(from, to) + g(from, to) <= rate * (1 + 1e-6) + 1e-6);
}

} // namespace

TEST_CASE("with each place reduced once the whole program is the reduced one, and without that no "
          "slower") {
  rng random = stream(61, "dedloc plan");
  int better = 0;
  for (int swarm = 0; swarm < 120; ++swarm) {
    const auto all = random_swarm(random, 9);
    std::vector<pair_limit> limits;
    if (swarm % 2 == 1)
      for (std::uint32_t i = 0; i < all.size(); ++i)
        for (std::uint32_t j = 0; j < all.size(); ++j)
          if (i != j && random.below(4) == 0) limits.push_back({i, j, log_uniform(random, 1e4, 3)});
    std::vector<bool> computes;
    for (const auto& peer : all) computes.push_back(peer.samples_per_second > 0);
    const auto whole = plan_dedloc_for(all, limits, 100, 1e8, computes);
    const auto part = plan_averaging(reduced(all, computes), limits);
    const auto once = plan_dedloc_for(all, limits, 100, 1e8, computes, true);
    REQUIRE(whole.ok());
    REQUIRE(once.ok());
    REQUIRE(part.ok());
    check_feasible(all, limits, 1e8, *whole);
    check_feasible(all, limits, 1e8, *once);
    if (std::isinf(whole->averaging_steps_per_second)) continue;
    const double rate = 1 / (part->seconds_per_bit * 1e8);
    REQUIRE(whole->averaging_steps_per_second >= rate * (1 - 1e-6));
    REQUIRE(once->averaging_steps_per_second == doctest::Approx(rate).epsilon(1e-6));
    better += whole->averaging_steps_per_second > rate * (1 + 1e-3);
  }
  MESSAGE(better << " of 120 swarms average faster when places are reduced more than once");
  CHECK(better > 0);
}

TEST_CASE("the search over the computing peers finds the best of all k") {
  rng random = stream(62, "dedloc plan");
  int some = 0;
  for (int swarm = 0; swarm < 60; ++swarm) {
    auto all = random_swarm(random, 8);
    const double batch = log_uniform(random, 1, 4), bits = 1e8;
    const auto plan = plan_dedloc(all, {}, batch, bits);
    REQUIRE(plan.ok());
    std::vector<std::size_t> order(all.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return all[a].samples_per_second > all[b].samples_per_second;
    });
    double best = 0;
    std::vector<bool> computes(all.size());
    for (const auto i : order) {
      if (all[i].samples_per_second == 0) break;
      computes[i] = true;
      best = std::max(best, plan_dedloc_for(all, {}, batch, bits, computes)->steps_per_second);
    }
    REQUIRE(plan->steps_per_second == doctest::Approx(best).epsilon(1e-9));
    some += plan->computes != computes;
  }
  CHECK(some > 5);
}

TEST_CASE("a peer whose uplink costs more than its gradients are worth only receives") {
  // Ten equal peers, and one with a hundredth of the speed and of the uplink.
  peers all(10, {10, 1e8, 1e8, true, true});
  all.push_back({0.1, 1e6, 1e8, true, true});
  const auto plan = plan_dedloc(all, {}, 10, 1e8);
  REQUIRE(plan.ok());
  CHECK_FALSE(plan->computes[10]);
  CHECK(plan->steps_per_second > 0.4);
  CHECK(plan_dedloc_for(all, {}, 10, 1e8, std::vector<bool>(11, true))->steps_per_second <=
        0.01 * (1 + 1e-9));
  // If computing the target batch takes long, every peer helps.
  CHECK(plan_dedloc(all, {}, 1e6, 1e8)->computes[10]);
}

TEST_CASE("an impossible DeDLOC plan is refused with the reason") {
  const auto error = [](const peers& all, double batch = 1, double bits = 1,
                        const std::vector<pair_limit>& limits = {}) {
    return plan_dedloc(all, limits, batch, bits).error();
  };
  const dedloc_peer fine{1, 10, 10, true, true}, closed{1, 10, 10, true, false};
  CHECK(error({{0, 10, 10}}) == "no DeDLOC plan: no peer computes");
  CHECK(error({fine, fine}, 0) == "no DeDLOC plan: the target batch has to be positive");
  CHECK(error({fine, fine}, 1, -1) == "no DeDLOC plan: the vector has to have bits");
  CHECK(error({fine, {-1, 10, 10}}) ==
        "no DeDLOC plan: the speed of peer 1 is negative or not finite");
  CHECK(error({closed, closed}) == "no averaging plan: no peer can reduce");
  CHECK(error({fine, fine}, 1, 1, {{0, 7, 1}}).find("peer 0 to peer 7") != std::string::npos);
  CHECK(error({closed, fine}, 1, 1, {{1, 0, 0}}) ==
        "no DeDLOC plan: no peer that can reduce has a way to all senders and receivers");
}
