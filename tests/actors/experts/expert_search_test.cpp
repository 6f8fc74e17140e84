// actors/experts/expert_search: the same experts as a look at all live ones, and bounded look-ups.
#include "actors/experts/expert_search.hpp"
#include "kernels/base/rng.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace shoal;
using namespace shoal::actors;

namespace {

struct random_grid {
  std::vector<std::vector<float>> scores;
  std::vector<expert_place> alive;

  random_grid(rng& random, std::size_t dimensions, std::uint32_t most_side, double share) {
    for (std::size_t d = 0; d < dimensions; ++d) {
      scores.emplace_back(1 + random.below(most_side));
      for (auto& s : scores.back()) s = static_cast<float>(random.normal());
    }
    for (expert_place at(dimensions);;) {
      if (random.uniform() < share) alive.push_back(at);
      std::size_t d = dimensions;
      while (d > 0 && ++at[d - 1] == scores[d - 1].size()) at[--d] = 0;
      if (d == 0) break;
    }
  }

  double logit(const expert_place& place) const {
    double out = 0;
    for (std::size_t d = 0; d < place.size(); ++d) out += scores[d][place[d]];
    return out;
  }
  /// The coordinates after the prefix under which an expert is alive.
  std::vector<std::uint32_t> after(const expert_place& prefix) const {
    std::vector<std::uint32_t> out;
    for (const auto& place : alive)
      if (std::equal(prefix.begin(), prefix.end(), place.begin()))
        out.push_back(place[prefix.size()]);
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
  }
  std::vector<expert_place> best(std::size_t k) const {
    auto out = alive;
    std::sort(out.begin(), out.end(), [&](const auto& a, const auto& b) {
      return std::pair(-logit(a), a) < std::pair(-logit(b), b);
    });
    out.resize(std::min(k, out.size()));
    return out;
  }
};

std::vector<expert_place> search(const random_grid& grid, expert_search& by) {
  while (const auto prefix = by.wanted()) by.give(grid.after(*prefix));
  std::vector<expert_place> out;
  for (const auto& each : by.best()) out.push_back(each.place);
  return out;
}

} // namespace

TEST_CASE("the search finds the best live experts of 10000 random grids") {
  auto random = stream(1, "grids");
  std::size_t holes = 0;
  for (int n = 0; n < 10'000; ++n) {
    const random_grid grid(random, 1 + random.below(3), 8, random.uniform());
    const auto k = 1 + random.below(6);
    expert_search by(grid.scores, {.best = k, .most_look_ups = 1000});
    const auto found = search(grid, by);
    REQUIRE(found == grid.best(k));
    REQUIRE_FALSE(by.was_cut());
    holes += by.look_ups() > 1 + (grid.scores.size() - 1) * k ? 1 : 0;
  }
  // Grids with holes at which a beam of k prefixes would have to guess.
  CHECK(holes > 100);
}

TEST_CASE("a full grid takes one look-up for each prefix of a result at most") {
  auto random = stream(2, "grids");
  for (int n = 0; n < 500; ++n) {
    const random_grid grid(random, 1 + random.below(3), 8, 1.1);
    const auto k = 1 + random.below(6);
    expert_search by(grid.scores, {.best = k, .most_look_ups = 1000});
    REQUIRE(search(grid, by) == grid.best(k));
    CHECK(by.look_ups() <= 1 + (grid.scores.size() - 1) * k);
  }
}

TEST_CASE("a search with few look-ups stops at the limit with live experts") {
  auto random = stream(3, "grids");
  std::size_t cut = 0;
  for (int n = 0; n < 500; ++n) {
    const random_grid grid(random, 3, 8, 0.02);
    expert_search by(grid.scores, {.best = 4, .most_look_ups = 9});
    for (const auto& place : search(grid, by))
      CHECK(std::find(grid.alive.begin(), grid.alive.end(), place) != grid.alive.end());
    CHECK(by.look_ups() <= 9);
    cut += by.was_cut() ? 1 : 0;
  }
  CHECK(cut > 20);
}

TEST_CASE("the search ignores coordinates that the grid does not have") {
  expert_search by({{1, 2}, {0, 3}}, {.best = 2, .most_look_ups = 10});
  CHECK(by.wanted() == expert_place{});
  by.give({1, 7, 4'000'000'000});
  CHECK(by.wanted() == expert_place{1});
  by.give({9, 0});
  CHECK_FALSE(by.wanted());
  REQUIRE(by.best().size() == 1);
  CHECK(by.best()[0].place == expert_place{1, 0});
  CHECK(by.best()[0].logit == doctest::Approx(2));
}
