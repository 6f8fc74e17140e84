#include "kernels/base/rng.hpp"
#include "kernels/linear_program.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <thread>

using namespace shoal;
using namespace shoal::kernels;

namespace {

/// The least of cost . x over lower <= x <= 1 with sum x = 1: the cheapest variables are filled
/// first.
double cheapest(const std::vector<double>& costs, double most) {
  auto sorted = costs;
  std::sort(sorted.begin(), sorted.end());
  double left = 1, out = 0;
  for (const double cost : sorted) {
    const double taken = std::min(left, most);
    out += taken * cost;
    left -= taken;
  }
  return out;
}

linear_program knapsack(const std::vector<double>& costs, double most) {
  linear_program out;
  linear_program::row sum{{}, 1, 1};
  for (std::size_t j = 0; j < costs.size(); ++j) {
    out.variables.push_back({costs[j], 0, most});
    sum.terms.push_back({j, 1});
  }
  out.rows.push_back(sum);
  return out;
}

} // namespace

TEST_CASE("a program of two variables has the solution and the duals of the textbook") {
  // maximise 3x + 5y with x <= 4, 2y <= 12, 3x + 2y <= 18: (2, 6), 36; the duals are 0, 3/2, 1
  // (Hillier and Lieberman).
  linear_program wyndor;
  wyndor.variables = {{-3}, {-5}};
  wyndor.rows = {
      {{{0, 1}}, -unbounded, 4}, {{{1, 2}}, -unbounded, 12}, {{{0, 3}, {1, 2}}, -unbounded, 18}};
  const auto solved = minimise(wyndor);
  REQUIRE(solved.ok());
  CHECK(solved->objective == doctest::Approx(-36));
  CHECK(solved->values[0] == doctest::Approx(2));
  CHECK(solved->values[1] == doctest::Approx(6));
  CHECK(solved->duals[0] == 0);
  CHECK(solved->duals[1] == doctest::Approx(-1.5));
  CHECK(solved->duals[2] == doctest::Approx(-1));
}

TEST_CASE("a program without a solution, and one without a smallest value, say so") {
  linear_program none;
  none.variables = {{1, 0, 1}};
  none.rows = {{{{0, 1}}, 2, unbounded}};
  CHECK(minimise(none).error() == "the linear program has no solution");
  linear_program endless;
  endless.variables = {{-1}};
  endless.rows = {{{{0, 1}}, 2, unbounded}};
  CHECK(minimise(endless).error() == "the linear program has no smallest value");
}

TEST_CASE("a program that GLPK rejects is an error and does not end the process") {
  linear_program twice;
  twice.variables = {{1}};
  twice.rows = {{{{0, 1}, {0, 1}}, 1, 1}}; // GLPK ends the process unless stopped
  CHECK_FALSE(minimise(twice).ok());
  linear_program fine;
  fine.variables = {{1}};
  fine.rows = {{{{0, 2}}, 1, unbounded}};
  REQUIRE(minimise(fine).ok());
  CHECK(minimise(fine)->values[0] == doctest::Approx(0.5));
}

TEST_CASE("random knapsacks are solved exactly, the same on every thread") {
  rng random = stream(7, "linear program");
  std::vector<linear_program> programs;
  std::vector<linear_solution> once;
  for (int i = 0; i < 200; ++i) {
    std::vector<double> costs(1 + random.below(30));
    for (double& cost : costs) cost = random.normal();
    const double most = 1.0 / static_cast<double>(1 + random.below(costs.size()));
    programs.push_back(knapsack(costs, most));
    auto solved = minimise(programs.back());
    REQUIRE(solved.ok());
    REQUIRE(solved->objective == doctest::Approx(cheapest(costs, most)).epsilon(1e-12));
    once.push_back(std::move(*solved));
  }
  std::array<int, 4> same{};
  std::vector<std::thread> threads;
  for (int& count : same)
    threads.emplace_back([&programs, &once, &count] {
      for (std::size_t i = 0; i < programs.size(); ++i) {
        const auto again = minimise(programs[i]);
        count += again.ok() && again->values == once[i].values && again->duals == once[i].duals;
      }
    });
  for (auto& thread : threads) thread.join();
  for (const int count : same) CHECK(count == 200);
}
