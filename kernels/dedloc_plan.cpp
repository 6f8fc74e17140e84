#include "kernels/dedloc_plan.hpp"

#include "kernels/base/check.hpp"
#include "kernels/linear_program.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <string>

namespace shoal::kernels {

namespace {

std::vector<averaging_peer> group_of(std::span<const dedloc_peer> peers,
                                     const std::vector<bool>& computes) {
  std::vector<averaging_peer> out;
  out.reserve(peers.size());
  for (std::size_t i = 0; i < peers.size(); ++i)
    out.push_back({peers[i].up, peers[i].down, computes[i], peers[i].receives, peers[i].reduces});
  return out;
}

result<void> check(std::span<const dedloc_peer> peers, double target_batch, double vector_bits) {
  for (std::size_t i = 0; i < peers.size(); ++i)
    if (!std::isfinite(peers[i].samples_per_second) || peers[i].samples_per_second < 0)
      return failure{"no DeDLOC plan: the speed of peer " + std::to_string(i) +
                     " is negative or not finite"};
  if (!(std::isfinite(target_batch) && target_batch > 0))
    return failure{"no DeDLOC plan: the target batch has to be positive"};
  if (!(std::isfinite(vector_bits) && vector_bits > 0))
    return failure{"no DeDLOC plan: the vector has to have bits"};
  return {};
}

} // namespace

result<dedloc_plan> plan_dedloc_for(std::span<const dedloc_peer> peers,
                                    std::span<const pair_limit> limits, double target_batch,
                                    double vector_bits, const std::vector<bool>& computes,
                                    bool each_place_once) {
  const auto n = peers.size();
  SHOAL_CHECK(computes.size() == n, "a flag for each peer says whether it computes");
  if (auto fine = check(peers, target_batch, vector_bits); !fine) return failure{fine.error()};
  // The best time without pair limits gives the unit of rates, so that variables are around 1. It
  // also refuses impossible groups.
  const auto simple = fill_lines(group_of(peers, computes));
  if (!simple) return failure{simple.error()};
  dedloc_plan out;
  out.computes = computes;
  out.values.resize(n * n);
  out.results.resize(n * n);
  for (std::size_t i = 0; i < n; ++i)
    if (computes[i]) out.compute_steps_per_second += peers[i].samples_per_second / target_batch;
  if (simple->seconds_per_bit == 0) { // one peer by itself
    out.averaging_steps_per_second = unbounded;
    out.steps_per_second = out.compute_steps_per_second;
    return out;
  }
  const auto unit = 1 / simple->seconds_per_bit;

  std::vector<double> most(n * n, unbounded);
  for (const auto& [from, to, rate] : limits) {
    if (from >= n || to >= n || from == to || !(std::isfinite(rate) && rate >= 0))
      return failure{"no DeDLOC plan: the limit from peer " + std::to_string(from) + " to peer " +
                     std::to_string(to) + " is of unknown peers, or negative or not finite"};
    most[from * n + to] = std::min(most[from * n + to], rate);
  }

  // Variables: m_i [n], g_ij [n, n] (m_i on the diagonal, which g does not use), the rate z of
  // averaging.
  linear_program program;
  const auto g = [n](std::size_t i, std::size_t j) { return n + i * n + j; };
  const auto z = n + n * n;
  program.variables.resize(z + 1);
  program.variables[z].cost = -1;
  for (std::size_t i = 0; i < n; ++i) {
    if (!peers[i].reduces) program.variables[i].upper = 0;
    for (std::size_t j = 0; j < n; ++j) {
      const bool useful = i != j && peers[i].reduces && peers[j].receives;
      program.variables[g(i, j)].upper = useful ? unbounded : 0;
      if (useful) program.rows.push_back({{{g(i, j), 1}, {i, -1}}, -unbounded, 0});
      const auto limit = most[i * n + j];
      if (i == j || std::isinf(limit)) continue;
      linear_program::row pair{{}, -unbounded, limit > 0 ? 1.0 : 0.0};
      const auto scale = limit > 0 ? unit / limit : 1;
      if (computes[i]) pair.terms.push_back({j, scale});
      if (useful) pair.terms.push_back({g(i, j), scale});
      program.rows.push_back(std::move(pair));
    }
  }
  const double senders = static_cast<double>(std::count(computes.begin(), computes.end(), true));
  for (std::size_t i = 0; i < n; ++i) {
    const auto line = [&](double rate) {
      return linear_program::row{{}, -unbounded, rate > 0 ? 1.0 : 0.0};
    };
    auto up = line(peers[i].up), down = line(peers[i].down);
    const auto of_up = peers[i].up > 0 ? unit / peers[i].up : 1,
               of_down = peers[i].down > 0 ? unit / peers[i].down : 1;
    linear_program::row whole{{{z, -1}, {i, 1}}, 0, unbounded};
    if (const auto from = senders - (computes[i] ? 1 : 0); from > 0)
      down.terms.push_back({i, from * of_down});
    for (std::size_t j = 0; j < n; ++j) {
      if (j == i) continue;
      if (computes[i]) up.terms.push_back({j, of_up});
      up.terms.push_back({g(i, j), of_up});
      down.terms.push_back({g(j, i), of_down});
      whole.terms.push_back({g(j, i), 1});
    }
    program.rows.push_back(std::move(up));
    program.rows.push_back(std::move(down));
    if (peers[i].receives) program.rows.push_back(std::move(whole));
  }
  if (each_place_once) {
    linear_program::row once{{{z, -1}}, 0, 0};
    for (std::size_t i = 0; i < n; ++i) once.terms.push_back({i, 1});
    program.rows.push_back(std::move(once));
  }
  const auto solved = minimise(program);
  if (!solved) return failure{"no DeDLOC plan: " + solved.error()};
  const auto rate = [&](std::size_t variable) {
    return std::max(solved->values[variable], 0.0) * unit;
  };
  if (rate(z) <= 0)
    return failure{
        "no DeDLOC plan: no peer that can reduce has a way to all senders and receivers"};
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j) {
      out.values[i * n + j] = computes[i] && i != j ? rate(j) : 0;
      out.results[i * n + j] = i == j ? rate(i) : rate(g(i, j));
    }
  out.averaging_steps_per_second = rate(z) / vector_bits;
  out.steps_per_second = std::min(out.compute_steps_per_second, out.averaging_steps_per_second);
  return out;
}

result<dedloc_plan> plan_dedloc(std::span<const dedloc_peer> peers,
                                std::span<const pair_limit> limits, double target_batch,
                                double vector_bits, bool each_place_once) {
  if (auto fine = check(peers, target_batch, vector_bits); !fine) return failure{fine.error()};
  std::vector<std::size_t> fastest(peers.size());
  std::iota(fastest.begin(), fastest.end(), std::size_t{0});
  std::erase_if(
      fastest, [&](std::size_t i) { return peers[i].samples_per_second == 0 || peers[i].up == 0; });
  if (fastest.empty()) return failure{"no DeDLOC plan: no peer computes"};
  std::stable_sort(fastest.begin(), fastest.end(), [&](std::size_t a, std::size_t b) {
    return peers[a].samples_per_second > peers[b].samples_per_second;
  });
  const auto with = [&](std::size_t k) {
    std::vector<bool> computes(peers.size());
    for (std::size_t i = 0; i < k; ++i) computes[fastest[i]] = true;
    return plan_dedloc_for(peers, limits, target_batch, vector_bits, computes, each_place_once);
  };
  // The first k with which averaging is the bound, or with which peers cannot average any more. The
  // best k is this one or the one before it.
  std::optional<dedloc_plan> best;
  std::string why;
  const auto averaging_binds = [&](std::size_t k) {
    auto plan = with(k);
    if (!plan) {
      why = plan.error();
      return true;
    }
    const bool binds = plan->compute_steps_per_second >= plan->averaging_steps_per_second;
    if (!best || plan->steps_per_second > best->steps_per_second) best = std::move(*plan);
    return binds;
  };
  std::size_t low = 0, high = fastest.size(); // computing binds at `low`, and trivially at 0
  while (high - low > 1) {
    const auto middle = low + (high - low) / 2;
    (averaging_binds(middle) ? high : low) = middle;
  }
  averaging_binds(high);
  if (!best) return failure{why};
  return std::move(*best);
}

} // namespace shoal::kernels
