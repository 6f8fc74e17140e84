#include "kernels/balanced_shares.hpp"
#include "kernels/base/rng.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

using namespace shoal;
using namespace shoal::kernels;

namespace {

/// The time of the slowest member, in vectors over rate.
double slowest(const std::vector<double>& rates, const std::vector<double>& shares) {
  double out = 0;
  for (std::size_t i = 0; i < rates.size(); ++i)
    if (rates[i] > 0)
      out = std::max(out, (1 + (static_cast<double>(rates.size()) - 2) * shares[i]) / rates[i]);
  return out;
}

} // namespace

TEST_CASE("equal lines get equal shares, and a dead line none") {
  for (const double share : balanced_shares(std::vector<double>{5, 5, 5, 5}))
    CHECK(share == doctest::Approx(0.25));
  const auto shares = balanced_shares(std::vector<double>{5, 0, 5, 5});
  CHECK(shares[1] == 0);
  CHECK(shares[0] == doctest::Approx(1.0 / 3));
  CHECK(balanced_shares(std::vector<double>{7}) == std::vector<double>{1});
  CHECK(balanced_shares(std::vector<double>{1, 3}) == std::vector<double>{0.25, 0.75});
}

TEST_CASE("no exchange of load between two members shortens the round") {
  rng random = stream(8, "balanced shares");
  for (int round = 0; round < 500; ++round) {
    std::vector<double> rates(3 + random.below(20));
    for (double& rate : rates) rate = random.below(6) == 0 ? 0 : random.lognormal(3, 1);
    rates[0] = 10;
    const auto shares = balanced_shares(rates);
    double sum = 0;
    for (std::size_t i = 0; i < rates.size(); ++i) {
      REQUIRE(shares[i] >= 0);
      REQUIRE((rates[i] > 0 || shares[i] == 0));
      sum += shares[i];
    }
    REQUIRE(sum == doctest::Approx(1).epsilon(1e-12));
    const double best = slowest(rates, shares);
    for (int attempt = 0; attempt < 50; ++attempt) {
      auto other = shares;
      const auto from = random.below(rates.size());
      const auto to = random.below(rates.size());
      const double moved = other[from] * random.uniform();
      if (rates[to] == 0) continue;
      other[from] -= moved;
      other[to] += moved;
      REQUIRE(slowest(rates, other) >= best * (1 - 1e-9));
    }
  }
}
