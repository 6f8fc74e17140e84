#include "netem/cut.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

using namespace shoal;
using namespace shoal::netem;

TEST_CASE(
    "a cut between selected machines and the rest blocks messages across it in its direction") {
  const auto both = cut::between({1, 3}, traffic_direction::both);
  CHECK(both.blocks(1, 0));
  CHECK(both.blocks(0, 1));
  CHECK(both.blocks(9, 3));
  CHECK_FALSE(both.blocks(1, 3));
  CHECK_FALSE(both.blocks(0, 2));
  const auto from = cut::between({1, 3}, traffic_direction::from);
  CHECK(from.blocks(1, 0));
  CHECK_FALSE(from.blocks(0, 1));
  const auto to = cut::between({1, 3}, traffic_direction::to);
  CHECK_FALSE(to.blocks(1, 0));
  CHECK(to.blocks(0, 1));
}

TEST_CASE("isolated machines do not reach each other either") {
  const auto c = cut::isolating({1, 3}, traffic_direction::both);
  CHECK(c.blocks(1, 3));
  CHECK(c.blocks(3, 0));
  CHECK_FALSE(c.blocks(0, 2));
}

TEST_CASE("a side of nobody_elses reaches every side") {
  const auto c = cut::apart({cut::nobody_elses, 1, 2}, traffic_direction::both);
  CHECK_FALSE(c.blocks(0, 1));
  CHECK_FALSE(c.blocks(2, 0));
  CHECK(c.blocks(1, 2));
}

TEST_CASE("in a ring of majorities each machine reaches a majority and no two of four or more "
          "reach the same") {
  for (std::uint32_t n = 4; n <= 25; ++n) {
    std::vector<std::uint32_t> members;
    for (std::uint32_t i = 0; i < n; ++i) members.push_back((i * 7) % 29);
    const auto c = cut::majorities_ring(members);
    std::set<std::set<std::uint32_t>> views;
    for (const auto m : members) {
      std::set<std::uint32_t> view;
      for (const auto other : members)
        if (other == m || !c.blocks(m, other)) view.insert(other);
      CAPTURE(n);
      CHECK(view.size() > n / 2);
      if (n > 4) CHECK(view.size() < n);
      views.insert(view);
      for (const auto other : members)
        if (other != m) CHECK(c.blocks(m, other) == c.blocks(other, m));
    }
    CHECK(views.size() == n);
    CHECK_FALSE(c.blocks(members[0], 1000));
  }
}

TEST_CASE("elements are drawn without repetition and with equal frequency") {
  rng draws = stream(1, "test");
  std::vector<std::uint32_t> all{0, 1, 2, 3, 4, 5};
  std::vector<int> count(6);
  for (int i = 0; i < 6000; ++i) {
    const auto some = draw_some(all, 2, draws);
    CHECK(some.size() == 2);
    CHECK(some[0] != some[1]);
    for (const auto s : some) ++count[s];
  }
  for (const auto c : count) CHECK(std::abs(c - 2000) < 200);
  CHECK(draw_some(all, 6, draws).size() == 6);
}
