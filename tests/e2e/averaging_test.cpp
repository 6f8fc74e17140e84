// Averaging strategies as live actors, beside closed forms and beside the same draws in plain
// loops.
#include "kernels/base/stats.hpp"
#include "scenarios/bench/averaging.hpp"
#include "tests/e2e/support/program.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <map>

using namespace shoal;
using namespace shoal::e2e;
using namespace shoal::scenarios;

namespace {

averaging_figures figures(const averaging_bench& what) {
  auto out = run_averaging_bench(what);
  REQUIRE(out);
  CHECK(out->misbehaved == 0);
  CHECK(out->bypassed == 0);
  return std::move(*out);
}

averaging_bench of(std::string_view strategy, std::size_t peers, kernels::grid grid = {4, 2}) {
  averaging_bench out;
  out.strategy = actors::averaging_strategies().find(strategy);
  REQUIRE(out.strategy);
  out.peers = peers;
  out.grid = grid;
  out.group_size = 4;
  out.vector = 8;
  return out;
}

/// The same restart in plain loops. Places, absences and groups come from the same streams.
std::vector<double> brute_force(const averaging_bench& what, unsigned restart, std::size_t rounds) {
  auto draws = stream(what.seed, "values", restart), places = stream(what.seed, "places", restart);
  auto away = stream(what.seed, "away", restart),
       partition = stream(what.seed, "partition", restart);
  std::vector<std::vector<double>> x(what.peers, std::vector<double>(what.vector));
  for (auto& mine : x)
    for (auto& v : mine) v = static_cast<float>(draws.normal());
  std::vector<std::uint64_t> cells;
  if (what.strategy->name == "moshpit") cells = kernels::place(what.grid, what.peers, places);
  const auto distortion = [&] {
    double sum = 0;
    for (std::size_t k = 0; k < what.vector; ++k) {
      std::vector<double> column;
      for (const auto& mine : x) column.push_back(mine[k]);
      sum += variance(column) / static_cast<double>(what.vector);
    }
    return sum;
  };
  const auto initial = distortion();
  std::vector<double> out{1};
  for (std::size_t t = 1; t <= rounds; ++t) {
    std::vector<bool> here(what.peers, true);
    if (what.failure > 0)
      for (std::size_t i = 0; i < what.peers; ++i) here[i] = away.uniform() >= what.failure;
    std::vector<std::uint64_t> group(what.peers, 0);
    if (what.strategy->name == "random-groups") {
      const auto drawn = kernels::random_groups(what.peers, what.group_size, partition);
      group.assign(drawn.begin(), drawn.end());
    } else if (what.strategy->name == "moshpit") {
      for (std::size_t i = 0; i < what.peers; ++i)
        group[i] = kernels::line_of(what.grid, cells[i], kernels::axis_of(what.grid, t));
    }
    const bool all = std::all_of(here.begin(), here.end(), [](bool h) { return h; });
    if ((what.strategy->name == "all-reduce" && !all) ||
        (what.strategy->name == "parameter-server" && !here[0])) {
      out.push_back(distortion() / initial);
      continue;
    }
    std::map<std::uint64_t, std::pair<std::vector<double>, double>> sums;
    for (std::size_t i = 0; i < what.peers; ++i) {
      if (!here[i]) continue;
      auto& [sum, count] = sums[group[i]];
      sum.resize(what.vector);
      for (std::size_t k = 0; k < what.vector; ++k) sum[k] += x[i][k];
      count += 1;
    }
    for (std::size_t i = 0; i < what.peers; ++i)
      if (here[i])
        for (std::size_t k = 0; k < what.vector; ++k)
          x[i][k] = sums[group[i]].first[k] / sums[group[i]].second;
    out.push_back(distortion() / initial);
  }
  return out;
}

} // namespace

TEST_CASE("a full grid is exact after as many rounds as it has axes") {
  for (const kernels::grid grid : {kernels::grid{2, 2}, kernels::grid{5, 2}, kernels::grid{3, 3},
                                   kernels::grid{2, 5}, kernels::grid{8, 1}})
    for (const auto assignment : {group_assignment::dht, group_assignment::given}) {
      auto what = of("moshpit", grid.cells(), grid);
      what.assignment = assignment;
      const auto out = figures(what);
      CAPTURE(kernels::to_string(grid));
      REQUIRE(out.restarts.size() == 1);
      const auto& curve = out.restarts[0];
      CHECK(curve.distortion.size() == grid.dimensions + 1);
      CHECK(curve.distortion.back() < 1e-13); // float32
      CHECK(curve.from_mean.back() < 1e-13);
      if (grid.dimensions > 1) CHECK(curve.distortion[grid.dimensions - 1] > 1e-3);
      CHECK(out.failed == 0);
      CHECK(out.partial == 0);
    }
}

TEST_CASE("with failures, the distortion is that of plain loops with the same draws") {
  for (const std::string_view strategy :
       {"moshpit", "random-groups", "all-reduce", "parameter-server"})
    for (const double failure : {0.0, 0.05, 0.2})
      for (const auto assignment : {group_assignment::given, group_assignment::dht}) {
        auto what = of(strategy, 24, {5, 2});
        what.failure = strategy == "all-reduce" ? failure / 4 : failure;
        what.assignment = assignment;
        what.rounds = assignment == group_assignment::given ? 8 : 5;
        what.at_least = 3;
        what.restarts = 2;
        what.seed = 3;
        const auto out = figures(what);
        CAPTURE(strategy);
        CAPTURE(failure);
        CAPTURE(static_cast<int>(assignment));
        for (unsigned r = 0; r < 2; ++r) {
          const auto& measured = out.restarts[r].distortion;
          const auto expected = brute_force(what, r, measured.size() - 1);
          for (std::size_t t = 0; t < measured.size(); ++t)
            CHECK(std::abs(measured[t] - expected[t]) < 1e-5 * expected[t] + 1e-12);
        }
      }
}

TEST_CASE("groups that find together in the DHT are those that are given, to the last bit") {
  auto what = of("moshpit", 60, {8, 2});
  what.failure = 0.03;
  what.rounds = 4;
  what.at_least = 4;
  const auto found = figures(what);
  what.assignment = group_assignment::given;
  const auto given = figures(what);
  for (std::size_t t = 0; t < 5; ++t)
    CHECK(found.restarts[0].distortion[t] ==
          doctest::Approx(given.restarts[0].distortion[t]).epsilon(1e-6));
}

TEST_CASE("vectors of any length are averaged, in groups that are given and in those that find "
          "together") {
  for (const auto assignment : {group_assignment::given, group_assignment::dht})
    for (const std::size_t vector :
         {1u, 3u, 1000u, 300'000u}) { // fewer values than members; one chunk; several
      auto what = of("moshpit", 16);
      what.assignment = assignment;
      what.vector = vector;
      CAPTURE(vector);
      const auto out = figures(what);
      CHECK(out.restarts[0].rounds_to(1e-12) == 2);
      CHECK(out.restarts[0].from_mean.back() < 1e-12);
      CHECK(out.ok == 32);
    }
}

TEST_CASE(
    "theorem 3.2 with live actors: one round of random groups contracts by (r - 1) / (N - 1)") {
  struct sizes {
    std::size_t peers, group;
  };
  for (const auto& [peers, group] :
       {sizes{4, 2}, sizes{9, 3}, sizes{16, 4}, sizes{10, 3}, sizes{64, 8}}) {
    auto what = of("random-groups", peers);
    what.assignment = group_assignment::given;
    what.group_size = group;
    what.rounds = 1;
    what.restarts = 400;
    what.vector = 1;
    std::vector<double> factors;
    for (const auto& r : figures(what).restarts) factors.push_back(r.distortion[1]);
    const auto groups = static_cast<double>(peers / group), n = static_cast<double>(peers);
    const double error = std::sqrt(variance(factors) / static_cast<double>(factors.size()));
    MESSAGE(peers << " peers, " << groups << " groups: measured " << mean(factors) << " +- "
                  << error << ", exact " << kernels::random_groups_factor(n, groups)
                  << ", as printed " << kernels::random_groups_factor_as_printed(n, groups));
    CHECK(std::abs(mean(factors) - kernels::random_groups_factor(n, groups)) < 3 * error);
  }
}

TEST_CASE("gossip and push-sum come to the mean of all, and keep it") {
  for (const std::string_view strategy : {"gossip", "push-sum"})
    for (const double failure : {0.0, 0.05}) {
      auto what = of(strategy, 32);
      what.failure = failure;
      what.rounds = 80;
      const auto out = figures(what);
      CAPTURE(strategy);
      CAPTURE(failure);
      CHECK(out.restarts[0].rounds_to(1e-9));
      CHECK(out.restarts[0].from_mean.back() < 1e-9);
    }
}

TEST_CASE("one seed gives one history of averaging, and the network's times are in it") {
  auto what = of("moshpit", 16);
  const auto a = figures(what), b = figures(what);
  CHECK(a.restarts[0].seconds == b.restarts[0].seconds);
  CHECK(a.restarts[0].distortion == b.restarts[0].distortion);
  CHECK(a.messages == b.messages);
  what.delay = std::chrono::milliseconds(500);
  CHECK(figures(what).restarts[0].seconds.back() > a.restarts[0].seconds.back() + 0.9);
}

TEST_CASE("options that make no sense are refused") {
  auto what = of("moshpit", 0);
  CHECK(!run_averaging_bench(what));
  what = of("moshpit", 4);
  what.failure = 1;
  CHECK(run_averaging_bench(what).error() ==
        "the probability of failure is at least 0 and less than 1");
}

TEST_CASE("bench averaging as a user meets it") {
  scratch_folder folder;
  const auto svg = (folder / "curves.svg").string();
  const auto text = run_program({"bench", "averaging", "--strategy", "moshpit,gossip", "--peers",
                                 "9", "--grid", "3x3", "--svg", svg});
  CHECK(text.exit == 0);
  CHECK(text.err.empty());
  CHECK(text.out.find("9 peers on 3x3, vectors of 32, 1 restart") == 0);
  CHECK(text.out.find("moshpit            1e-03         2.00") != std::string::npos);
  CHECK(text.out.find("theory 1.000e+00") != std::string::npos);
  CHECK(slurp(svg).find("moshpit, theory") != std::string::npos);

  const auto json = nlohmann::json::parse(
      run_program({"bench", "averaging", "--peers", "9", "--restarts", "2", "--json"}).out);
  CHECK(json.at("grid") == "3x3");
  CHECK(json.at("strategies")[0].at("to").at("1e-09").at("rounds") == 2);
  CHECK(json.at("strategies")[0].at("to").at("1e-09").at("reached") == 2);

  struct wrong {
    std::vector<std::string> arguments;
    std::string says;
    int exit;
  };
  for (const auto& [arguments, says, exit] :
       {wrong{{"--strategy", "moshpitt"},
              "error: --strategy: unknown strategy 'moshpitt'; did you mean 'moshpit'?\n",
              2},
        wrong{{"--grid", "8x9"},
              "error: --grid: '8x9' is not a grid: its sides have to be equal\n",
              2},
        wrong{{"--grid", "99999x99999"}, "error: 9999800001 peers: at most 4194304 fit\n", 2},
        wrong{{"--failure", "1"}, "error: --failure: has to be at most 99.9%\n", 2},
        wrong{{"--restart", "1"},
              "unknown option --restart; did you mean --restarts?\nRun 'shoal help bench "
              "averaging' for more information.\n",
              2},
        wrong{{"--peers", "4", "--svg", "/nowhere/x.svg"},
              "error: /nowhere/x.svg: cannot be written: No such file or directory\n",
              1}}) {
    auto line = std::vector<std::string>{"bench", "averaging"};
    line.insert(line.end(), arguments.begin(), arguments.end());
    const auto out = run_program(line);
    CHECK(out.err == says);
    CHECK(out.exit == exit);
    CHECK(out.out.empty());
  }
}
