#include "kernels/base/stats.hpp"
#include "kernels/mixing.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

using namespace shoal;
using namespace shoal::kernels;

TEST_CASE("grids: written, read, and refused with the reason") {
  CHECK(*parse_grid("32x32") == grid{32, 2});
  CHECK(*parse_grid("8x8x8") == grid{8, 3});
  CHECK(*parse_grid("7") == grid{7, 1});
  CHECK(to_string(grid{8, 3}) == "8x8x8");
  CHECK(grid{32, 4}.cells() == 1'048'576);
  for (const char* bad : {"", "x", "8x", "1x1", "8x9", "-3x3", "8 x 8", "2000000x2000000"}) {
    INFO(bad);
    CHECK(!parse_grid(bad));
  }
  CHECK(parse_grid("8x9").error() == "'8x9' is not a grid: its sides have to be equal");
}

TEST_CASE("two peers that met do not meet again before all axes were used, and each line is full") {
  for (const grid g : {grid{3, 2}, grid{4, 3}, grid{2, 5}}) {
    std::set<std::pair<std::uint64_t, std::uint64_t>> met;
    for (std::uint64_t t = 1; t <= g.dimensions; ++t) {
      std::map<std::uint64_t, std::vector<std::uint64_t>> lines;
      for (std::uint64_t cell = 0; cell < g.cells(); ++cell)
        lines[line_of(g, cell, axis_of(g, t))].push_back(cell);
      CHECK(lines.size() == g.cells() / g.side);
      for (const auto& [line, members] : lines) {
        CHECK(members.size() == g.side);
        for (auto a : members)
          for (auto b : members)
            if (a < b) CHECK(met.insert({a, b}).second);
      }
    }
  }
}

TEST_CASE("places: all different while there are cells, then evenly twice") {
  auto draws = stream(1, "test");
  auto some = place({4, 2}, 10, draws);
  CHECK(std::set<std::uint64_t>(some.begin(), some.end()).size() == 10);
  auto many = place({4, 2}, 40, draws);
  std::map<std::uint64_t, int> count;
  for (auto cell : many) ++count[cell];
  CHECK(count.size() == 16);
  for (const auto& [cell, n] : count) CHECK((n == 2 || n == 3));
}

TEST_CASE("random groups: every peer is in one, and the remainder makes the sizes differ") {
  auto draws = stream(1, "test");
  auto groups = random_groups(900, 32, draws);
  std::map<std::uint32_t, int> size;
  for (auto g : groups) ++size[g];
  CHECK(size.size() == 28);
  for (const auto& [g, n] : size) CHECK((n == 32 || n == 33));
  for (auto g : random_groups(5, 32, draws)) CHECK(g == 0);
}

TEST_CASE("theorem 3.2: the measured factor is (r - 1) / (N - 1), not the printed one") {
  struct sizes {
    std::size_t peers, size;
  };
  for (const auto& [peers, size] :
       {sizes{4, 2}, sizes{9, 3}, sizes{16, 4}, sizes{10, 3}, sizes{60, 6}}) {
    auto draws = stream(7, "theorem", peers);
    const auto groups = static_cast<double>(peers / size);
    std::vector<double> factors;
    for (int seed = 0; seed < 4000; ++seed) {
      std::vector<double> values(peers);
      for (auto& v : values) v = draws.normal();
      const auto before = variance(values);
      const auto of = random_groups(peers, size, draws);
      std::map<std::uint32_t, std::pair<double, double>> sums;
      for (std::size_t i = 0; i < peers; ++i) {
        sums[of[i]].first += values[i];
        sums[of[i]].second += 1;
      }
      for (std::size_t i = 0; i < peers; ++i) values[i] = sums[of[i]].first / sums[of[i]].second;
      factors.push_back(variance(values) / before);
    }
    const double error = std::sqrt(variance(factors) / static_cast<double>(factors.size()));
    const double exact = random_groups_factor(static_cast<double>(peers), groups);
    CAPTURE(peers);
    CHECK(std::abs(mean(factors) - exact) < 3 * error);
    CHECK(random_groups_factor_as_printed(static_cast<double>(peers), groups) > exact);
  }
  CHECK(random_groups_factor(9, 3) == 0.25);
  CHECK(random_groups_factor_as_printed(9, 3) == doctest::Approx(0.2593).epsilon(0.001));
}

TEST_CASE("all-reduce of all peers: the expected rounds, cut at the limit") {
  CHECK(all_reduce_rounds(512, 0, 50) == 1);
  CHECK(all_reduce_rounds(512, 0.005, 50) == doctest::Approx(12.78).epsilon(0.001));
  CHECK(all_reduce_rounds(900, 0.005, 50) == doctest::Approx(38.63).epsilon(0.001));
  CHECK(all_reduce_rounds(1024, 0.01, 50) == doctest::Approx(49.96).epsilon(0.001));
}

TEST_CASE("all-reduce of all peers: the deviation of the rounds is that of a geometric law, cut at "
          "the limit") {
  CHECK(all_reduce_deviation(512, 0, 50) == 0);
  const double success = std::pow(0.999, 512.0); // hardly ever more than 50 rounds
  CHECK(all_reduce_deviation(512, 0.001, 50) == doctest::Approx(std::sqrt(1 - success) / success));
  double mean = 0, square = 0, left = 1;
  const double p = std::pow(0.995, 900.0);
  for (int k = 1; k <= 50; ++k) {
    const double here = k < 50 ? left * p : left;
    mean += k * here;
    square += k * k * here;
    left -= here;
  }
  CHECK(all_reduce_rounds(900, 0.005, 50) == doctest::Approx(mean));
  CHECK(all_reduce_deviation(900, 0.005, 50) == doctest::Approx(std::sqrt(square - mean * mean)));
}

TEST_CASE("the smallest square grid holds all peers") {
  CHECK(square_grid(1) == grid{2, 2});
  CHECK(square_grid(4) == grid{2, 2});
  CHECK(square_grid(5) == grid{3, 2});
  CHECK(square_grid(1024) == grid{32, 2});
  CHECK(square_grid(1025) == grid{33, 2});
  CHECK(square_grid(4'194'304) == grid{2048, 2});
}

TEST_CASE("exponential graph: each peer has as many edges in as out, and none to itself") {
  for (std::uint32_t n : {2u, 3u, 5u, 16u, 17u, 100u})
    for (std::uint64_t t = 1; t < 9; ++t) {
      std::vector<int> in(n);
      std::size_t out = 0;
      for (std::uint32_t i = 0; i < n; ++i)
        for (auto to : exponential_neighbours(i, n, t)) {
          CHECK(to != i);
          ++in[to];
          ++out;
        }
      for (auto count : in) CHECK(static_cast<std::size_t>(count) * n == out);
    }
}
