#include "actors/trust/audit_plan.hpp"
#include "actors/trust/beacon.hpp"
#include "kernels/base/rng.hpp"
#include "kernels/base/stats.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>
#include <vector>

using namespace shoal;
using namespace shoal::actors;

namespace {

digest number(std::uint64_t of) {
  return hasher{}.add(of).finish();
}

/// A member of a swarm of which some attack.
struct member {
  bool attacks = false;
};

/// The protocol's round without its messages: the members make the random number, and honest
/// validators find the attackers among their targets. Returns those, ascending.
std::vector<std::uint32_t> found_out(const std::vector<member>& members, std::uint32_t validators,
                                     rng& random) {
  const auto n = static_cast<std::uint32_t>(members.size());
  const group_id group{random.next(), random.next()};
  beacon beacon(group, n);
  std::vector<key256> secrets(n);
  for (std::uint32_t i = 0; i < n; ++i) {
    secrets[i] = {random.next(), random.next(), random.next(), random.next()};
    beacon.commit(i, hidden(group, i, secrets[i]));
  }
  bool all = true;
  for (std::uint32_t i = 0; i < n; ++i) all = beacon.reveal(i, secrets[i]) && all;
  REQUIRE(all);
  const std::vector<std::uint64_t> weights(n, 32);
  std::vector<std::uint32_t> out;
  for (const auto& [validator, target] :
       plan_audits(beacon.value(), weights, std::vector<bool>(n, true), validators))
    if (members[target].attacks && !members[validator].attacks) out.push_back(target);
  return out;
}

double choose(double n, double k) {
  double out = k < 0 || k > n ? 0 : 1;
  for (double i = 1; i <= k; ++i) out *= (n - k + i) / i;
  return out;
}
/// P(`hits` of `drawn` are among the `marked` of n), drawn without replacement.
double hypergeometric(double n, double marked, double drawn, double hits) {
  return choose(marked, hits) * choose(n - marked, drawn - hits) / choose(n, drawn);
}

/// P(`found` attackers are found out in a round), of `b` among n members with m validators. For
/// that, t of m targets attack, and honest members validate `found` of these t.
double found_chance(int n, int b, int m, int found) {
  double out = 0;
  for (int t = found; t <= std::min(b, m); ++t)
    out += hypergeometric(n, b, m, t) * hypergeometric(n, n - b, t, found);
  return out;
}
/// The mean number of rounds until the last of `b` attackers is found out, and of its square. Found
/// attackers leave.
std::pair<double, double> rounds_to_find_all(int n, int b, int m) {
  if (b == 0) return {0, 0};
  // T = 1 + T' with T' of the members that stay.
  double first = 1, second = 1;
  for (int found = 1; found <= std::min(b, m); ++found) {
    const auto [mean, square] = rounds_to_find_all(n - found, b - found, m);
    const double p = found_chance(n, b, m, found);
    first += p * mean;
    second += p * (2 * mean + square);
  }
  const double stays = found_chance(n, b, m, 0);
  const double mean = first / (1 - stays);
  return {mean, (second + 2 * stays * mean) / (1 - stays)};
}

} // namespace

TEST_CASE("audit plan: all members make the same plan, and other numbers make others") {
  const std::vector<std::uint64_t> weights(16, 4);
  const std::vector<bool> all(16, true);
  std::set<std::pair<std::uint32_t, std::uint32_t>> pairs;
  for (std::uint64_t i = 0; i < 2000; ++i) {
    const auto plan = plan_audits(number(i), weights, all, 3);
    CHECK(plan == plan_audits(number(i), weights, all, 3));
    std::set<std::uint32_t> validators;
    for (std::size_t k = 0; k < plan.size(); ++k) {
      pairs.emplace(plan[k].validator, plan[k].target);
      CHECK(plan[k].validator != plan[k].target);
      CHECK(validators.insert(plan[k].validator).second);
      if (k > 0) CHECK(plan[k - 1].target < plan[k].target);
    }
    CHECK(plan.size() <= 3);
  }
  CHECK(pairs.size() == 16 * 15);
}

TEST_CASE("audit plan: a target is drawn in proportion to its weight") {
  const std::vector<std::uint64_t> weights{1, 0, 3, 10, 2};
  const std::vector<bool> able{true, true, false, true, true};
  constexpr int runs = 40'000;
  std::vector<int> targets(5), validators(5);
  std::map<std::pair<std::uint32_t, std::uint32_t>, int> pairs; // (validator, target)
  for (std::uint64_t i = 0; i < runs; ++i)
    for (const auto& [validator, target] : plan_audits(number(i), weights, able, 2)) {
      ++targets[target];
      ++validators[validator];
      ++pairs[{validator, target}];
    }
  CHECK(targets[1] == 0);
  CHECK(validators[2] == 0);
  for (std::size_t i = 0; i < 5; ++i) {
    // A member that may validate is drawn as its own validator in a quarter of its audits.
    const double drawn = std::min(1.0, 2 * static_cast<double>(weights[i]) / 16);
    const double p = drawn * (able[i] ? 0.75 : 1);
    const double error = std::sqrt(runs * p * (1 - p));
    CAPTURE(i);
    CHECK(std::abs(targets[i] - runs * p) <= 3 * error);
  }
  // Validators are drawn apart from the targets.
  for (const std::uint32_t v : {0, 1, 3, 4}) {
    const double p = 0.25 * 6 / 16;
    CAPTURE(v);
    CHECK(std::abs(pairs[{v, 2}] - runs * p) <= 3 * std::sqrt(runs * p * (1 - p)));
  }
}

TEST_CASE("audit plan: there is no plan without weights or without validators") {
  const std::vector<std::uint64_t> none(3, 0), some(3, 5), huge(3, ~std::uint64_t{0});
  CHECK(plan_audits(number(1), none, {true, true, true}, 2).empty());
  CHECK(plan_audits(number(1), some, {false, false, false}, 2).empty());
  CHECK(plan_audits(number(1), some, {true, true, true}, 0).empty());
  CHECK(plan_audits(number(1), {}, {}, 2).empty());
  // Weights are the members' word. Any of them give a plan, and more validators than members, too.
  for (std::uint64_t i = 0; i < 100; ++i) {
    const auto plan = plan_audits(number(i), huge, {true, true, true}, 9);
    CHECK(plan.size() <= 3);
    for (const auto& each : plan) CHECK(each.target < 3);
  }
}

TEST_CASE("audit plan: the farthest member is three times as far as the median, or nobody is") {
  using distances = std::vector<double>;
  const double nan = std::nan(""), infinite = std::numeric_limits<double>::infinity();
  CHECK(farthest_member(distances{}) == std::nullopt);
  CHECK(farthest_member(distances{1, 9}) == std::nullopt);
  CHECK(farthest_member(distances{1, 1, 3}) == std::nullopt);
  CHECK(farthest_member(distances{1, 3.1, 1}) == 1u);
  CHECK(farthest_member(distances{1, 5, 1, 9, 1}) == 3u);
  // Members that contribute nothing do not count.
  CHECK(farthest_member(distances{-1, 1, -1, 9}) == std::nullopt);
  CHECK(farthest_member(distances{-1, 1, 1, 9}) == 3u);
  CHECK(farthest_member(distances{1, nan, 1, 9}) == 1u);
  CHECK(farthest_member(distances{infinite, 1, 1}) == 0u);
  CHECK(farthest_member(distances{0, 0, 0}) == std::nullopt);
  // Attackers that are no majority do not hide each other.
  CHECK(farthest_member(distances{1, 1, 1, 1, 9, 9, 9}) == 4u);
}

TEST_CASE("audit plan: each member that may watch is drawn equally often and no suspect is") {
  std::map<std::uint32_t, std::size_t> drawn;
  const std::vector<bool> may{true, true, false, true, true};
  for (std::uint64_t i = 0; i < 9000; ++i) ++drawn[draw_watcher(number(i), may, 3).value()];
  CHECK(drawn.size() == 3);
  // Three standard deviations of a binomial number with p = 1/3.
  for (const std::uint32_t m : {0u, 1u, 4u})
    CHECK(std::abs(static_cast<double>(drawn[m]) - 3000) < 3 * std::sqrt(9000 * 2.0 / 9));
  CHECK(draw_watcher(number(1), {true, false}, 0) == std::nullopt);
}

TEST_CASE("audit plan: jurors are the other members or some of them") {
  const id128 case_id{1, 2};
  CHECK(draw_jurors(number(1), case_id, 5, 1, 3, 0) == std::vector<std::uint32_t>{0, 2, 4});
  CHECK(draw_jurors(number(1), case_id, 5, 1, 3, 3) == std::vector<std::uint32_t>{0, 2, 4});
  CHECK(draw_jurors(number(1), case_id, 2, 0, 1, 0).empty());
  std::vector<int> drawn(16);
  constexpr int runs = 20'000;
  for (std::uint64_t i = 0; i < runs; ++i) {
    const auto jurors = draw_jurors(number(i), case_id, 16, 4, 9, 5);
    CHECK(jurors == draw_jurors(number(i), case_id, 16, 4, 9, 5));
    CHECK(jurors.size() == 5);
    CHECK(std::is_sorted(jurors.begin(), jurors.end()));
    for (const auto j : jurors) ++drawn[j];
  }
  const double p = 5.0 / 14, error = std::sqrt(runs * p * (1 - p));
  for (std::size_t i = 0; i < 16; ++i) {
    CAPTURE(i);
    if (i == 4 || i == 9)
      CHECK(drawn[i] == 0);
    else
      CHECK(std::abs(drawn[i] - runs * p) <= 3.5 * error);
  }
  CHECK(draw_jurors(number(1), case_id, 16, 4, 9, 5) !=
        draw_jurors(number(1), {1, 3}, 16, 4, 9, 5));
}

TEST_CASE("audit plan: rounds until an attacker is found out follow the geometric distribution") {
  // Gorbunov et al., section 3.3, as the paper's code draws it: (m / n) ((n - b) / n) in each step.
  struct swarm {
    int n, b, m;
  };
  for (const auto& [n, b, m] :
       {swarm{16, 1, 1}, {16, 3, 1}, {16, 7, 1}, {16, 7, 2}, {16, 3, 4}, {8, 1, 1}, {24, 5, 3}}) {
    CAPTURE(n);
    CAPTURE(b);
    CAPTURE(m);
    constexpr int runs = 2000;
    auto random = stream(35, "found_out", static_cast<std::uint64_t>(n * 100 + b), m);
    std::vector<member> members(static_cast<std::size_t>(n));
    for (int i = 0; i < b; ++i) members[static_cast<std::size_t>(2 * i)].attacks = true;
    // The swarm stays as it is, and the attacker of the run is member 0.
    std::vector<double> rounds;
    for (int run = 0; run < runs; ++run)
      for (int round = 1;; ++round) {
        const auto found = found_out(members, static_cast<std::uint32_t>(m), random);
        if (found.empty() || found.front() != 0) continue;
        rounds.push_back(round);
        break;
      }
    const double p = static_cast<double>(m) / n * (n - b) / n;
    MESSAGE("n ", n, ", b ", b, ", m ", m, ": ", mean(rounds), " rounds, expected ", 1 / p);
    CHECK(std::abs(mean(rounds) - 1 / p) <= 3 * std::sqrt((1 - p) / runs) / p);
    // The distribution, by the quartiles of the geometric one.
    for (const double q : {0.25, 0.5, 0.75, 0.95}) {
      const double bound = std::ceil(std::log(1 - q) / std::log(1 - p));
      const double expected = 1 - std::pow(1 - p, bound);
      const auto below =
          std::count_if(rounds.begin(), rounds.end(), [&](double each) { return each <= bound; });
      CAPTURE(q);
      CHECK(std::abs(static_cast<double>(below) - runs * expected) <=
            3 * std::sqrt(runs * expected * (1 - expected)));
    }
  }
}

TEST_CASE("audit plan: rounds until all attackers are gone have the mean of the closed form") {
  struct swarm {
    int n, b, m;
  };
  for (const auto& [n, b, m] : {swarm{16, 7, 1}, {16, 7, 2}, {16, 3, 1}, {16, 7, 4}, {32, 10, 3}}) {
    CAPTURE(n);
    CAPTURE(b);
    CAPTURE(m);
    constexpr int runs = 2000;
    auto random = stream(36, "found_out", static_cast<std::uint64_t>(n * 100 + b), m);
    std::vector<double> rounds;
    for (int run = 0; run < runs; ++run) {
      std::vector<member> members(static_cast<std::size_t>(n));
      for (int i = 0; i < b; ++i) members[static_cast<std::size_t>(i)].attacks = true;
      int left = b, round = 0;
      for (; left > 0; ++round) {
        const auto found = found_out(members, static_cast<std::uint32_t>(m), random);
        for (auto i = found.rbegin(); i != found.rend(); ++i) members.erase(members.begin() + *i);
        left -= static_cast<int>(found.size());
      }
      rounds.push_back(round);
    }
    const auto [expected, square] = rounds_to_find_all(n, b, m);
    MESSAGE("n ", n, ", b ", b, ", m ", m, ": ", mean(rounds), " rounds, expected ", expected);
    CHECK(std::abs(mean(rounds) - expected) <=
          3 * std::sqrt((square - expected * expected) / runs));
  }
}
