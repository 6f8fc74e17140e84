// The incremental solution of max_min equals the one from scratch, and is max-min fair by itself.
#include "kernels/base/rng.hpp"
#include "netem/max_min.hpp"
#include "netem/max_min_reference.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace {

using namespace shoal;
using namespace shoal::netem;

// A solver beside a plain record of its flows.
struct pair_of_solvers {
  struct entry {
    max_min::flow_index flow;
    max_min_demand demand;
  };
  max_min solver;
  std::vector<double> capacities;
  std::vector<entry> flows;

  link_id link(double capacity) {
    capacities.push_back(capacity);
    return solver.add_link(capacity);
  }
  void add(max_min_demand demand) {
    const auto f = solver.add_flow(demand.path, demand.cap, demand.weight);
    flows.push_back({f, std::move(demand)});
  }
  void remove(std::size_t i) {
    solver.remove_flow(flows[i].flow);
    flows[i] = flows.back();
    flows.pop_back();
  }
  void set_capacity(std::size_t l, double capacity) {
    capacities[l] = capacity;
    solver.set_capacity(link_id{static_cast<std::uint32_t>(l)}, capacity);
  }
  void set_cap(std::size_t i, double cap) {
    flows[i].demand.cap = cap;
    solver.set_cap(flows[i].flow, cap);
  }

  double worst_difference_from_scratch() const {
    std::vector<max_min_demand> demands;
    for (const auto& f : flows) demands.push_back(f.demand);
    const auto expected = max_min_reference(capacities, demands);
    double worst = 0;
    for (std::size_t i = 0; i < flows.size(); ++i) {
      const double rate = solver.rate(flows[i].flow);
      // On a link without capacity, either side may have a rounding error left.
      const double difference = std::abs(rate - expected[i]);
      if (difference > 1e-14) worst = std::max(worst, difference / std::max(rate, expected[i]));
    }
    return worst;
  }

  // The rates are feasible, and every flow has a bottleneck: its cap, or a full link on which its
  // level is the highest.
  bool is_max_min_fair(double tolerance = 1e-9) const {
    std::vector<double> used(capacities.size(), 0), highest(capacities.size(), 0);
    for (const auto& f : flows)
      for (const auto& use : f.demand.path) {
        const auto l = static_cast<std::size_t>(use.link);
        used[l] += use.amount * solver.rate(f.flow);
        highest[l] = std::max(highest[l], solver.level(f.flow));
      }
    for (std::size_t l = 0; l < used.size(); ++l)
      if (used[l] > capacities[l] * (1 + tolerance)) return false;
    for (const auto& f : flows) {
      const double rate = solver.rate(f.flow);
      if (rate > f.demand.cap * (1 + tolerance)) return false;
      bool held = rate >= f.demand.cap * (1 - tolerance);
      for (const auto& use : f.demand.path) {
        const auto l = static_cast<std::size_t>(use.link);
        held |= used[l] >= capacities[l] * (1 - tolerance) &&
                solver.level(f.flow) >= highest[l] * (1 - tolerance);
      }
      if (!held) return false;
    }
    return true;
  }
};

// The kinds of graphs, which determine the path of the next flow.
enum class shape { star, mesh, trunk, weighted };

max_min_demand random_demand(shape kind, std::size_t links, rng& draw) {
  max_min_demand demand;
  const auto id = [](std::size_t i) { return link_id{static_cast<std::uint32_t>(i)}; };
  const auto half = links / 2;
  if (kind == shape::mesh) {
    const auto length = 1 + draw.below(4);
    for (std::size_t k = 0; k < length; ++k) {
      const auto l = id(draw.below(links));
      if (std::none_of(demand.path.begin(), demand.path.end(),
                       [&](const link_use& use) { return use.link == l; }))
        demand.path.push_back({l, 1});
    }
  } else {
    const auto from = draw.below(half), to = draw.below(half);
    demand.path = {{id(from), 1}, {id(half + to), 1}};
    if (kind == shape::trunk && from % 2 != to % 2) // the last link joins the two sides
      demand.path.push_back({id(2 * half), 1});
    if (kind == shape::weighted) {
      demand.weight = draw.uniform(0.1, 3);
      if (from != to) { // acknowledgements, as in SimGrid's cross-traffic
        demand.path.push_back({id(to), 0.05});
        demand.path.push_back({id(half + from), 0.05});
      }
    }
  }
  const auto kind_of_cap = draw.below(4);
  if (kind_of_cap == 0) demand.cap = draw.uniform(0.05, 5);
  if (kind_of_cap == 1) demand.cap = 1; // equals other caps
  return demand;
}

void churn(shape kind, std::size_t links, std::size_t target, std::size_t steps, bool equal_links,
           std::uint64_t seed) {
  auto draw = stream(seed, "flow_max_min_test");
  pair_of_solvers both;
  for (std::size_t l = 0; l < links; ++l) both.link(equal_links ? 10 : draw.uniform(1, 20));
  double worst = 0;
  for (std::size_t step = 0; step < steps; ++step) {
    const auto batch = 1 + draw.below(4);
    for (std::size_t k = 0; k < batch; ++k) {
      const auto what = draw.below(20);
      if (what == 0) {
        const auto l = draw.below(links);
        const auto zero = draw.below(5) == 0;
        both.set_capacity(l, zero ? 0 : equal_links ? 10 : draw.uniform(1, 20));
      } else if (what == 1 && !both.flows.empty()) {
        const auto i = draw.below(both.flows.size());
        const auto no_cap = draw.below(3) == 0;
        both.set_cap(i, no_cap ? unlimited : draw.uniform(0, 4));
      } else if (draw.below(2 * target) >= both.flows.size()) {
        both.add(random_demand(kind, links, draw));
      } else {
        both.remove(draw.below(both.flows.size()));
      }
    }
    both.solver.solve();
    worst = std::max(worst, both.worst_difference_from_scratch());
    REQUIRE_MESSAGE(worst <= 1e-9, "seed " << seed << " step " << step);
    REQUIRE_MESSAGE(both.is_max_min_fair(), "seed " << seed << " step " << step);
  }
}

} // namespace

TEST_CASE("rates from scratch are those of a worked example") {
  // Bertsekas and Gallager, section 6.5.2: three flows share a link of capacity 1. One of them also
  // shares a second link of capacity 1 with a fourth flow. The rates are 1/3 each, and 2/3 for the
  // fourth flow.
  const link_id a{0}, b{1};
  const std::vector<double> capacities{1, 1};
  const std::vector<max_min_demand> flows{
      {{{a, 1}}}, {{{a, 1}}}, {{{a, 1}, {b, 1}}}, {{{b, 1}}}, {{{a, 1}, {b, 1}}, 0.1}};
  const auto rates = max_min_reference(capacities, flows);
  CHECK(rates[4] == doctest::Approx(0.1));
  CHECK(rates[0] == doctest::Approx(0.3));
  CHECK(rates[2] == doctest::Approx(0.3));
  CHECK(rates[3] == doctest::Approx(0.6));
}

TEST_CASE("a change moves only the rates that it concerns") {
  pair_of_solvers both;
  const auto a = both.link(10), b = both.link(6), c = both.link(100), d = both.link(2);
  both.add({{{a, 1}, {b, 1}}});
  both.add({{{b, 1}, {c, 1}}});
  both.add({{{c, 1}, {d, 1}}});
  CHECK(both.solver.solve().size() == 3);
  CHECK(both.solver.rate(0) == 3);
  CHECK(both.solver.rate(1) == 3);
  CHECK(both.solver.rate(2) == 2);
  CHECK(both.solver.bottleneck(0) == b);
  CHECK(both.solver.fill_level(c) == unlimited);

  both.set_capacity(3, 5); // the third flow shares a link with the second one, which has room
  const auto changed = both.solver.solve();
  REQUIRE(changed.size() == 1);
  CHECK(changed[0] == 2);
  CHECK(both.solver.rate(2) == 5);
  CHECK(both.solver.solve().empty());
}

TEST_CASE("a change runs along a chain of bottlenecks as far as it must") {
  // Link i carries flow i and flow i + 1, so the end of a flow at one side moves every rate.
  pair_of_solvers both;
  std::vector<link_id> links;
  for (int i = 0; i < 200; ++i) links.push_back(both.link(10 + i));
  both.add({{{links[0], 1}}});
  for (std::size_t i = 0; i + 1 < links.size(); ++i) both.add({{{links[i], 1}, {links[i + 1], 1}}});
  both.add({{{links.back(), 1}}});
  both.solver.solve();
  CHECK(both.is_max_min_fair());
  CHECK(both.worst_difference_from_scratch() <= 1e-9);
  both.remove(0);
  CHECK(both.solver.solve().size() == 200);
  CHECK(both.worst_difference_from_scratch() <= 1e-9);
}

TEST_CASE("a link without capacity stops its flows and lets them go when it has some") {
  pair_of_solvers both;
  const auto a = both.link(0), b = both.link(4);
  both.add({{{a, 1}, {b, 1}}});
  both.add({{{b, 1}}});
  both.solver.solve();
  CHECK(both.solver.rate(0) == 0);
  CHECK(both.solver.rate(1) == 4);
  both.set_capacity(0, 1);
  both.solver.solve();
  CHECK(both.solver.rate(0) == 1);
  CHECK(both.solver.rate(1) == 3);
}

TEST_CASE("a flow that starts and ends between two solutions leaves nothing behind") {
  pair_of_solvers both;
  const auto a = both.link(4);
  both.add({{{a, 1}}});
  both.solver.solve();
  both.add({{{a, 1}}});
  both.remove(1);
  both.solver.solve();
  CHECK(both.solver.rate(0) == 4);
  both.add({{{a, 1}}, 1.0});
  both.remove(1);
  both.add({{{a, 1}}, 0.5});
  both.solver.solve();
  CHECK(both.solver.rate(0) == 3.5);
  CHECK(both.solver.used(a) == 4);
}

TEST_CASE("incremental rates equal those from scratch on a star of up and down links") {
  for (std::uint64_t seed = 0; seed < 4; ++seed) churn(shape::star, 24, 60, 1500, false, seed);
}

TEST_CASE("incremental rates equal those from scratch where many links are equal") {
  for (std::uint64_t seed = 0; seed < 4; ++seed) churn(shape::star, 30, 80, 1500, true, seed);
}

TEST_CASE("incremental rates equal those from scratch on random paths") {
  for (std::uint64_t seed = 0; seed < 4; ++seed) churn(shape::mesh, 20, 50, 1500, false, seed);
}

TEST_CASE("incremental rates equal those from scratch with a shared trunk") {
  for (std::uint64_t seed = 0; seed < 4; ++seed) churn(shape::trunk, 21, 60, 1500, seed % 2, seed);
}

TEST_CASE("incremental rates equal those from scratch with weights and cross-traffic") {
  for (std::uint64_t seed = 0; seed < 4; ++seed) churn(shape::weighted, 20, 50, 1500, false, seed);
}

TEST_CASE(
    "incremental rates equal those from scratch among thousands of flows in overlapping groups") {
  auto draw = stream(5, "groups");
  pair_of_solvers both;
  constexpr std::size_t peers = 256, group = 16;
  for (std::size_t l = 0; l < 2 * peers; ++l) both.link(draw.uniform(6, 19));
  const auto send_all = [&](std::size_t peer, std::size_t stride) {
    const auto base = peer - peer / stride % group * stride;
    for (std::size_t k = 0; k < group; ++k) {
      const auto other = base + k * stride;
      if (other != peer)
        both.add({{{link_id{static_cast<std::uint32_t>(peer)}, 1},
                   {link_id{static_cast<std::uint32_t>(peers + other)}, 1}}});
    }
  };
  for (std::size_t peer = 0; peer < peers; ++peer) send_all(peer, 1);
  for (int step = 0; step < 200; ++step) {
    send_all(draw.below(peers), draw.below(2) == 0 ? 1 : group);
    for (int k = 0; k < 15; ++k) both.remove(draw.below(both.flows.size()));
    both.solver.solve();
    REQUIRE(both.worst_difference_from_scratch() <= 1e-9);
    REQUIRE(both.is_max_min_fair());
  }
  CHECK(both.flows.size() == peers * (group - 1));
}

TEST_CASE("rounding does not add up over a hundred thousand changes") {
  auto draw = stream(9, "drift");
  pair_of_solvers both;
  for (int l = 0; l < 12; ++l) both.link(draw.uniform(1, 20) * 1e9);
  for (int step = 0; step < 100000; ++step) {
    if (draw.below(60) >= both.flows.size()) {
      auto demand = random_demand(shape::star, 12, draw);
      demand.cap *= 1e9;
      both.add(std::move(demand));
    } else {
      both.remove(draw.below(both.flows.size()));
    }
    both.solver.solve();
  }
  CHECK(both.worst_difference_from_scratch() <= 1e-11);
  for (std::size_t l = 0; l < 12; ++l) {
    double used = 0;
    for (const auto& f : both.flows)
      for (const auto& use : f.demand.path)
        if (static_cast<std::size_t>(use.link) == l) used += both.solver.rate(f.flow);
    CHECK(both.solver.used(link_id{static_cast<std::uint32_t>(l)}) ==
          doctest::Approx(used).epsilon(1e-11));
  }
}

TEST_CASE("the same changes give the same bits") {
  const auto run = [] {
    auto draw = stream(3, "bits");
    pair_of_solvers both;
    for (int l = 0; l < 20; ++l) both.link(draw.uniform(1, 20));
    std::vector<double> rates;
    for (int step = 0; step < 400; ++step) {
      if (draw.below(60) >= both.flows.size()) {
        both.add(random_demand(shape::weighted, 20, draw));
      } else {
        both.remove(draw.below(both.flows.size()));
      }
      both.solver.solve();
      for (const auto& f : both.flows) rates.push_back(both.solver.rate(f.flow));
    }
    return rates;
  };
  CHECK(run() == run());
}
