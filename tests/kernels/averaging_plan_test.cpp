#include "kernels/averaging_plan.hpp"
#include "kernels/balanced_shares.hpp"
#include "kernels/base/rng.hpp"
#include "kernels/part_boundaries.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

using namespace shoal;
using namespace shoal::kernels;

namespace {

using peers = std::vector<averaging_peer>;
using limits = std::vector<pair_limit>;
using shares = std::vector<double>;

averaging_peer full(double rate) {
  return {rate, rate};
}
averaging_peer client(double rate) {
  return {rate, rate, true, true, false};
}
averaging_peer auxiliary(double rate) {
  return {rate, rate, false, false, true};
}

/// The model again, transfer by transfer: each part goes from each sender to its reducer, and back
/// to each receiver.
double time_by_transfer(const peers& all, const limits& pairs, const shares& w) {
  const std::size_t n = all.size();
  std::vector<double> up(n), down(n);
  std::vector<std::vector<double>> between(n, std::vector<double>(n));
  for (std::size_t j = 0; j < n; ++j)
    for (std::size_t i = 0; i < n; ++i) {
      if (i == j) continue;
      if (all[i].contributes) up[i] += w[j], down[j] += w[j], between[i][j] += w[j];
      if (all[i].receives) up[j] += w[j], down[i] += w[j], between[j][i] += w[j];
    }
  double out = 0;
  const auto line = [&](double load, double rate) {
    if (load > 1e-12) out = std::max(out, load / rate);
  };
  for (std::size_t i = 0; i < n; ++i) line(up[i], all[i].up), line(down[i], all[i].down);
  for (const auto& [from, to, rate] : pairs) line(between[from][to], rate);
  return out;
}

shares equal_among(const peers& all, bool auxiliaries) {
  shares out;
  for (const auto& peer : all)
    out.push_back(peer.reduces && (auxiliaries || peer.contributes) ? 1.0 : 0.0);
  const double sum = std::accumulate(out.begin(), out.end(), 0.0);
  for (double& share : out) share /= std::max(sum, 1.0);
  return out;
}

shares alone(const peers& all, std::size_t server) {
  shares out(all.size(), 0.0);
  out[server] = 1;
  return out;
}

double log_uniform(rng& random, double low, double decades) {
  return low * std::pow(10, decades * random.uniform());
}

/// A random swarm of 2 to 40 peers. Lines span three decades or, in every other swarm, one, so that
/// the slowest sender is not always the bound. Some lines are asymmetric, some peers cannot be
/// reached, some do not train, some pairs are slow.
peers random_swarm(rng& random, limits& pairs, bool plain) {
  peers out(2 + random.below(39));
  const double decades = random.below(2) == 0 ? 3 : 1;
  const auto asymmetric = random.below(2) == 0, clients = random.below(2) == 0,
             auxiliaries = random.below(3) == 0;
  for (auto& peer : out) {
    peer.up = peer.down = log_uniform(random, 1e6, decades);
    if (plain) continue;
    if (asymmetric) peer.down = log_uniform(random, 1e6, decades);
    if (clients) peer.reduces = random.below(3) != 0;
    if (auxiliaries && random.below(4) == 0) peer.contributes = peer.receives = false;
    if (random.below(20) == 0) peer.receives = !peer.receives;
  }
  out[0].contributes = out[0].receives = out[0].reduces = true;
  if (plain || random.below(2) == 0) return out;
  for (std::uint32_t i = 0; i < out.size(); ++i)
    for (std::uint32_t j = 0; j < out.size(); ++j)
      if (i != j && random.below(8) == 0)
        pairs.push_back({i, j, log_uniform(random, 1e4, decades)});
  return out;
}

void check_is_a_plan(const peers& all, const limits& pairs, const averaging_plan& plan) {
  REQUIRE(plan.shares.size() == all.size());
  double sum = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    REQUIRE(plan.shares[i] >= 0);
    REQUIRE((all[i].reduces || plan.shares[i] == 0));
    sum += plan.shares[i];
  }
  REQUIRE(sum == doctest::Approx(1).epsilon(1e-12));
  REQUIRE(time_by_transfer(all, pairs, plan.shares) ==
          doctest::Approx(plan.seconds_per_bit).epsilon(1e-9));
}

} // namespace

TEST_CASE("no simple plan is faster than the linear program's, on 1,000 random swarms") {
  rng random = stream(1, "averaging plans");
  int hybrids = 0, limited = 0;
  double gain = 0;
  for (int swarm = 0; swarm < 1000; ++swarm) {
    limits pairs;
    const auto all = random_swarm(random, pairs, false);
    const auto plan = plan_averaging(all, pairs);
    REQUIRE_MESSAGE(plan.ok(), (plan.ok() ? "" : plan.error()));
    check_is_a_plan(all, pairs, *plan);
    const auto time = [&](const shares& w) { return seconds_per_bit(all, pairs, w); };
    double best = time(equal_among(all, true));
    if (plan->seconds_per_bit > 0) gain += best / plan->seconds_per_bit / 1000;
    best = std::min(best, time(equal_among(all, false)));
    for (std::size_t server = 0; server < all.size(); ++server)
      if (all[server].reduces) best = std::min(best, time(alone(all, server)));
    REQUIRE(plan->seconds_per_bit <= best * (1 + 1e-9));
    hybrids += plan->seconds_per_bit < best * (1 - 1e-6);
    limited +=
        !pairs.empty() && plan->seconds_per_bit > fill_lines(all)->seconds_per_bit * (1 + 1e-6);
    if (swarm % 10 == 0) REQUIRE(plan_averaging(all, pairs)->shares == plan->shares);
  }
  // The plan matters in most swarms, and the pair limits do in many.
  CHECK(hybrids > 300);
  CHECK(limited > 100);
  CHECK(gain > 1.5);
}

TEST_CASE("no other split is faster: moving load between any two reducers never helps") {
  rng random = stream(2, "averaging plans");
  for (int swarm = 0; swarm < 150; ++swarm) {
    limits pairs;
    const auto all = random_swarm(random, pairs, false);
    const auto plan = plan_averaging(all, pairs);
    REQUIRE(plan.ok());
    for (int attempt = 0; attempt < 200; ++attempt) {
      auto other = plan->shares;
      // The time is convex in the shares, so any better split would also be better a little way
      // towards it.
      double sum = 0;
      shares target(all.size(), 0.0);
      for (std::size_t i = 0; i < all.size(); ++i)
        if (all[i].reduces) sum += target[i] = random.below(3) == 0 ? random.uniform() : 0;
      if (sum == 0) continue;
      const double step = std::pow(10, -4 * random.uniform());
      for (std::size_t i = 0; i < all.size(); ++i) other[i] += step * (target[i] / sum - other[i]);
      REQUIRE(seconds_per_bit(all, pairs, other) >= plan->seconds_per_bit * (1 - 1e-9));
    }
  }
}

TEST_CASE("the closed forms agree with the linear program where they apply") {
  rng random = stream(3, "averaging plans");
  for (int swarm = 0; swarm < 300; ++swarm) {
    limits pairs;
    const bool plain = swarm % 2 == 0;
    const auto all = random_swarm(random, pairs, plain);
    const auto by_program = plan_averaging(all);
    const auto by_level = fill_lines(all);
    REQUIRE(by_program.ok());
    REQUIRE(by_level.ok());
    check_is_a_plan(all, {}, *by_level);
    REQUIRE(by_level->seconds_per_bit ==
            doctest::Approx(by_program->seconds_per_bit).epsilon(1e-9));
    if (!plain) continue;
    shares rates;
    for (const auto& peer : all) rates.push_back(std::min(peer.up, peer.down));
    REQUIRE(seconds_per_bit(all, {}, balanced_shares(rates)) ==
            doctest::Approx(by_program->seconds_per_bit).epsilon(1e-6));
  }
}

TEST_CASE("if several plans are best, the plan frees its lines first, the longest time first") {
  rng random = stream(4, "averaging plans");
  int limited = 0;
  for (int swarm = 0; swarm < 300; ++swarm) {
    limits pairs;
    const auto all = random_swarm(random, pairs, false);
    if (std::count_if(all.begin(), all.end(), [](const auto& peer) { return peer.receives; }) < 3)
      continue;
    if (std::count_if(all.begin(), all.end(), [](const auto& peer) { return peer.contributes; }) <
        3)
      continue;
    const auto plan = plan_averaging(all, pairs);
    REQUIRE(plan.ok());
    limited += !pairs.empty() && plan->shares != fill_lines(all)->shares;
    const auto times = [&](const shares& w) {
      std::vector<double> out;
      for (std::size_t i = 0; i < all.size(); ++i) {
        auto alone_on_its_line = all;
        for (std::size_t k = 0; k < all.size(); ++k)
          if (k != i) alone_on_its_line[k].up = alone_on_its_line[k].down = fastest_rate;
        if (all[i].reduces) out.push_back(seconds_per_bit(alone_on_its_line, {}, w));
      }
      std::sort(out.rbegin(), out.rend());
      return out;
    };
    const auto best = times(plan->shares);
    for (int attempt = 0; attempt < 40; ++attempt) {
      auto other = plan->shares;
      const auto from = random.below(all.size()), to = random.below(all.size());
      if (!all[to].reduces || from == to) continue;
      const double moved = other[from] * std::pow(10, -3 * random.uniform());
      other[from] -= moved, other[to] += moved;
      if (seconds_per_bit(all, pairs, other) > plan->seconds_per_bit * (1 + 1e-12)) continue;
      const auto theirs = times(other);
      for (std::size_t k = 0; k < best.size(); ++k) {
        if (theirs[k] > best[k] + 1e-8 * best[0]) break;
        REQUIRE(theirs[k] >= best[k] - 1e-6 * best[0]);
      }
    }
  }
  CHECK(limited > 20);
}

TEST_CASE("equal peers get an all-reduce") {
  for (const std::size_t n : {2, 3, 16, 40}) {
    const auto plan = plan_averaging(peers(n, full(1e8)));
    REQUIRE(plan.ok());
    for (const double share : plan->shares)
      CHECK(share == doctest::Approx(1.0 / static_cast<double>(n)).epsilon(1e-9));
    CHECK(plan->seconds_per_bit ==
          doctest::Approx(2.0 * static_cast<double>(n - 1) / (static_cast<double>(n) * 1e8))
              .epsilon(1e-9));
  }
}

TEST_CASE("one fast line makes a parameter server") {
  peers all(9, full(1e7));
  all[4] = full(8e7); // carries all eight others at their full rate
  const auto plan = plan_averaging(all);
  REQUIRE(plan.ok());
  CHECK(plan->shares[4] == doctest::Approx(1).epsilon(1e-9));
  CHECK(plan->seconds_per_bit == doctest::Approx(1e-7).epsilon(1e-9));

  // The same holds if no other peer can be reached, for any line.
  peers unreachable(9, client(1e7));
  unreachable[4] = full(1e7);
  const auto forced = plan_averaging(unreachable);
  REQUIRE(forced.ok());
  CHECK(forced->shares[4] == 1);
  CHECK(forced->seconds_per_bit == doctest::Approx(8e-7).epsilon(1e-9));
}

TEST_CASE("lines in between make a hybrid, clients reduce nothing, and auxiliary peers reduce "
          "without training") {
  // The fast line takes more than the others, and not everything: (x b - 1) / 7 each, 4 + 8 times 1
  // in rates.
  peers all(9, full(1e7));
  all[4] = full(4e7);
  const auto hybrid = plan_averaging(all);
  REQUIRE(hybrid.ok());
  CHECK(hybrid->shares[4] == doctest::Approx((4 * 16.0 / 12 - 1) / 7).epsilon(1e-9));
  CHECK(hybrid->shares[0] == doctest::Approx((16.0 / 12 - 1) / 7).epsilon(1e-9));

  // Four trainers have 10 Mbit/s, and two fast machines do not train. The two reduce everything.
  // Each trainer's line carries the vector once each way, as long as 4 w <= rate / 10 Mbit/s.
  peers byteps(4, full(1e7));
  byteps.push_back(auxiliary(2e7));
  byteps.push_back(auxiliary(2e7));
  const auto split = plan_averaging(byteps);
  REQUIRE(split.ok());
  CHECK(split->seconds_per_bit == doctest::Approx(1e-7).epsilon(1e-9));
  CHECK(split->shares[4] + split->shares[5] == doctest::Approx(1).epsilon(1e-9));
  CHECK(split->shares[4] == doctest::Approx(0.5).epsilon(1e-9));
  CHECK(plan_averaging(peers(4, full(1e7)))->seconds_per_bit ==
        doctest::Approx(1.5e-7).epsilon(1e-9));

  // The trainers are clients with the same help: no other peer can reduce, and the help's lines are
  // the bound.
  peers clients(4, client(1e7));
  clients.push_back(auxiliary(2e7));
  const auto helped = plan_averaging(clients);
  REQUIRE(helped.ok());
  CHECK(helped->shares[4] == 1);
  CHECK(helped->seconds_per_bit == doctest::Approx(4 / 2e7).epsilon(1e-9));
}

TEST_CASE("asymmetric lines: the uplink binds, and a peer that only receives or only sends loads "
          "one direction") {
  // Home lines of 100 down, 10 up: all-reduce by the uplinks.
  const auto home = plan_averaging(peers(8, averaging_peer{1e7, 1e8}));
  REQUIRE(home.ok());
  CHECK(home->seconds_per_bit == doctest::Approx(2 * 7.0 / 8 / 1e7).epsilon(1e-9));
  // One sender and one receiver have a line each, and there is no other peer. The values pass once
  // with either reducer.
  const auto one_way =
      plan_averaging(peers{{1e7, 0, true, false, true}, {0, 1e7, false, true, true}});
  REQUIRE(one_way.ok());
  CHECK(one_way->seconds_per_bit == doctest::Approx(1e-7).epsilon(1e-9));
  // A single peer sends nothing, even if others could help.
  CHECK(plan_averaging(peers{full(1e6)})->seconds_per_bit == 0);
  const auto self = plan_averaging(peers{full(1e6), auxiliary(1e9)});
  REQUIRE(self.ok());
  CHECK(self->seconds_per_bit == 0);
  CHECK(self->shares[0] == 1);
}

TEST_CASE("pair limits shift load to well-connected peers, and a pair without a way gets no part") {
  peers all(4, full(1e7));
  const auto cut = plan_averaging(all, limits{{0, 3, 0}});
  REQUIRE(cut.ok());
  // Peer 0 cannot send its values of 3's part to 3, nor the mean of its own part. So the other two
  // reduce, (1 + 2 w) / b with w = 1/2.
  CHECK(cut->shares[0] == 0);
  CHECK(cut->shares[3] == 0);
  CHECK(cut->seconds_per_bit == doctest::Approx(2e-7).epsilon(1e-9));

  // The pair of 0 and 1 has only 2 Mbit/s each way, so w_0 + w_1 <= 2e6 T. The other two take the
  // rest: (1 + 2 w) / 1e7 = T.
  const auto slow = plan_averaging(all, limits{{0, 1, 2e6}, {1, 0, 2e6}});
  REQUIRE(slow.ok());
  // w_0 + w_1 = 2e6 T, w_2 = w_3 = (1e7 T - 1) / 2, sum 1: T = 2 / 1.2e7.
  CHECK(slow->seconds_per_bit == doctest::Approx(2 / 1.2e7).epsilon(1e-9));
  CHECK(slow->shares[2] == doctest::Approx(1.0 / 3).epsilon(1e-9));
  CHECK(slow->shares[0] == doctest::Approx(1.0 / 6).epsilon(1e-9));
  CHECK(slow->shares[0] == doctest::Approx(slow->shares[1]).epsilon(1e-9));
}

TEST_CASE("an impossible plan is refused with the reason") {
  const auto error = [](const peers& all, const limits& pairs = {}) {
    return plan_averaging(all, pairs).error();
  };
  CHECK(error({}) == "no averaging plan: no peer has values to send");
  CHECK(error({auxiliary(1), auxiliary(1)}) == "no averaging plan: no peer has values to send");
  CHECK(error({{1, 1, true, false, true}}) == "no averaging plan: no peer wants the result");
  CHECK(error({client(1), client(1)}) == "no averaging plan: no peer can reduce");
  CHECK(error({full(1), full(-1)}) ==
        "no averaging plan: peer 1 has a rate that is neither 0 nor from 0.001 to 1e15 bit/s");
  CHECK(error({full(std::nan("")), full(1)}) ==
        "no averaging plan: peer 0 has a rate that is neither 0 nor from 0.001 to 1e15 bit/s");
  CHECK(error({full(1), full(INFINITY)}) ==
        "no averaging plan: peer 1 has a rate that is neither 0 nor from 0.001 to 1e15 bit/s");
  CHECK(error({full(1), {0, 1}}) == "no averaging plan: peer 1 has values to send and no uplink");
  CHECK(error({full(1), {1, 0}}) ==
        "no averaging plan: peer 1 wants the result and has no downlink");
  CHECK(error({client(1), client(1), auxiliary(0)}) ==
        "no averaging plan: no peer that can reduce has a line for it");
  CHECK(error({full(1), full(1)}, {{0, 2, 1}}) ==
        "no averaging plan: the limit from peer 0 to peer 2 is of unknown peers, or neither 0 nor "
        "from 0.001 to 1e15 bit/s");
  CHECK(error({full(1), full(1)}, {{1, 1, 1}}).find("from peer 1 to peer 1") != std::string::npos);
  CHECK(error({full(1), full(1)}, {{0, 1, -1}}).find("from peer 0 to peer 1") != std::string::npos);
  CHECK(error({full(1), full(1), client(1)}, {{2, 0, 0}, {2, 1, 0}}) ==
        "no averaging plan: no peer that can reduce has a way to all senders and receivers");
}

TEST_CASE("rates that a peer made up give an answer or an error") {
  rng random = stream(5, "averaging plans");
  int planned = 0;
  for (int swarm = 0; swarm < 500; ++swarm) {
    peers all(2 + random.below(20));
    limits pairs;
    for (auto& peer : all) {
      peer.up = random.below(4) == 0 ? fastest_rate : log_uniform(random, slowest_rate, 17.9);
      peer.down = random.below(4) == 0 ? slowest_rate : log_uniform(random, slowest_rate, 17.9);
    }
    for (std::uint32_t i = 1; i < all.size(); ++i)
      pairs.push_back({0, i, log_uniform(random, slowest_rate, 17.9)});
    const auto plan = plan_averaging(all, pairs);
    if (!plan.ok()) continue;
    ++planned;
    REQUIRE(plan->seconds_per_bit >= 0);
    REQUIRE(std::accumulate(plan->shares.begin(), plan->shares.end(), 0.0) == doctest::Approx(1));
  }
  CHECK(planned > 450);
  CHECK_FALSE(plan_averaging(peers{full(1e9), full(1e300)}).ok());
  CHECK_FALSE(plan_averaging(peers{full(1e9), full(5e-324)}).ok());
}

TEST_CASE("the partitions of hivemind's load balancing are reproduced or improved") {
  // The rates, with 0 for a peer that reduces nothing and none for an unknown rate. The reference,
  // whether it must be met exactly, and the smallest part.
  struct reference {
    std::uint64_t length;
    std::vector<std::optional<double>> rates;
    std::vector<std::uint64_t> parts;
    bool exactly = false;
    std::uint64_t smallest = 0;
  };
  const std::nullopt_t no = std::nullopt;
  const std::vector<reference> references = {
      {60, {.25, .25, .25, .25}, {15, 15, 15, 15}},
      {1024, {.3, .5, .9}, {0, 255, 769}},
      {60, {.44, .33, .22}, {42, 18, 0}},
      {60, {.55, .44, .40}, {35, 16, 9}},
      {1 << 20, {.3, .5, .9, .6}, {0, 169327, 602629, 276620}},
      {1 << 20, {0., .5, 0., .6}, {0, 428963, 0, 619613}},
      {60, {.55, .44, .40}, {41, 19, 0}, true, 10},
      {60, {.32, .55, .44}, {0, 40, 20}, true, 10},
      {2, {.55, .20, .44}, {1, 0, 1}, true, 10},
      {1, {.55, .20, .44}, {1, 0, 0}, true, 10},
      {100, {no, no}, {50, 50}, true},
      {100, {no, no, no, no, no}, {20, 20, 20, 20, 20}, true},
      {100, {0., 0., 0., no, no}, {0, 0, 0, 50, 50}, true},
  };
  for (std::size_t k = 0; k < references.size(); ++k) {
    CAPTURE(k);
    const auto& [length, rates, parts, exactly, smallest] = references[k];
    // Only lines of reducers count there, so the other lines are fast.
    peers all;
    for (const auto& rate : rates) all.push_back(rate == 0. ? client(1e3) : full(rate.value_or(1)));
    const auto plan = plan_averaging(all);
    REQUIRE(plan.ok());
    const double least = static_cast<double>(smallest) / static_cast<double>(length);
    const auto cuts = part_boundaries(length, without_small_shares(plan->shares, least));
    std::vector<std::uint64_t> sizes;
    for (std::size_t i = 0; i < all.size(); ++i) sizes.push_back(cuts[i + 1] - cuts[i]);
    const auto cost = [&](const std::vector<std::uint64_t>& v) {
      shares w;
      for (const auto part : v)
        w.push_back(static_cast<double>(part) / static_cast<double>(length));
      return seconds_per_bit(all, {}, w);
    };
    if (exactly) CHECK(sizes == parts);
    CHECK(cost(sizes) <= cost(parts) * (1 + 1e-12));
  }
  CHECK_FALSE(plan_averaging(peers{client(1), client(1), client(1)}).ok());
}

TEST_CASE(
    "sixteen peers of three kinds average 285.6 Mbit in 5.712 s, and in 10.71 s with equal parts") {
  peers all;
  for (const auto& [count, rate] : {std::pair{4, 200e6}, {8, 100e6}, {4, 50e6}})
    for (int i = 0; i < count; ++i) all.push_back(full(rate));
  const std::uint64_t parameters = 17'850'000;
  const auto seconds = [&](const shares& w) {
    const auto cuts = part_boundaries(parameters, w);
    shares cut;
    for (std::size_t i = 0; i < all.size(); ++i)
      cut.push_back(static_cast<double>(cuts[i + 1] - cuts[i]) / static_cast<double>(parameters));
    return seconds_per_bit(all, {}, cut) * 16 * static_cast<double>(parameters);
  };
  const auto plan = plan_averaging(all);
  REQUIRE(plan.ok());
  const double adaptive = seconds(plan->shares), equal = seconds(equal_shares(16));
  CHECK(adaptive == doctest::Approx(5.712).epsilon(1e-6));
  CHECK(equal == doctest::Approx(10.71).epsilon(1e-6));
  CHECK(equal / adaptive == doctest::Approx(1.875).epsilon(1e-6));
  CHECK(plan->shares[15] == 0);
  CHECK(seconds_per_bit(peers(16, full(200e6)), {}, equal_among(all, true)) * 285.6e6 ==
        doctest::Approx(2.6775).epsilon(1e-9));
  // In the measured set-up four machines helped that did not train. The slowest trainers stay the
  // bound.
  for (int i = 0; i < 4; ++i) all.push_back(auxiliary(500e6));
  CHECK(plan_averaging(all)->seconds_per_bit * 285.6e6 == doctest::Approx(5.712).epsilon(1e-6));
}

TEST_CASE("small shares go to the others, in proportion, unless all are small") {
  const auto near = [](const shares& got, const shares& want) {
    REQUIRE(got.size() == want.size());
    for (std::size_t i = 0; i < got.size(); ++i)
      CHECK(got[i] == doctest::Approx(want[i]).epsilon(1e-12));
  };
  near(without_small_shares(shares{.6, .3, .1}, .2), {2.0 / 3, 1.0 / 3, 0});
  near(without_small_shares(shares{.6, .3, .1}, .1), {.6, .3, .1});
  near(without_small_shares(shares{.6, .3, .1}, .7), {.6, .3, .1});
  near(without_small_shares(shares{6, 3, 1}, .2), {2.0 / 3, 1.0 / 3, 0});
}
