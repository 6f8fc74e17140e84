#include "actors/averaging/roster_plan.hpp"

#include "kernels/averaging_plan.hpp"
#include "kernels/balanced_shares.hpp"
#include "kernels/part_boundaries.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace shoal::actors {

std::uint16_t packed_factor(double factor) {
  return static_cast<std::uint16_t>(std::clamp(std::round(65536 * factor) - 1, 0.0, 65535.0));
}

double unpacked_factor(std::uint16_t packed) {
  return (packed + 1) / 65536.0;
}

std::vector<double> shares_of(const group_begun& roster) {
  // The members that are reached best get parts: those reached by all; else those with a relay;
  // else all.
  std::uint8_t best = 0;
  for (const auto& m : roster.members) best = std::max(best, m.reached);
  // A factor of 0 takes a member's part away. A leader may do so to a third of the members, so that
  // none takes the whole vector.
  const auto& factors = roster.rate_factors;
  std::vector<bool> reduces;
  for (const auto& m : roster.members) reduces.push_back(m.reached == best);
  auto left = reduces;
  for (std::size_t i = 0; i < factors.size(); ++i) left[i] = left[i] && factors[i] > 0;
  if (3 * std::count(factors.begin(), factors.end(), 0) <= std::ssize(roster.members) &&
      std::find(left.begin(), left.end(), true) != left.end())
    reduces = std::move(left);
  std::vector<kernels::averaging_peer> peers;
  for (std::size_t i = 0; i < roster.members.size(); ++i) {
    const auto& m = roster.members[i];
    const double factor = roster.rate_factors.empty() ? 1 : unpacked_factor(roster.rate_factors[i]);
    // A peer may declare any rate.
    const auto rate = [&](std::uint64_t said) {
      return std::clamp(factor * static_cast<double>(said), 1.0, kernels::fastest_rate);
    };
    peers.push_back({rate(m.rate_up), rate(m.rate_down), m.weight > 0, m.takes != 0, reduces[i]});
  }
  std::vector<double> out;
  for (const auto& p : peers) out.push_back(p.reduces ? std::min(p.up, p.down) : 0);
  if (static_cast<part_split>(roster.split) == part_split::parameter_server) {
    const auto widest = std::max_element(out.begin(), out.end());
    for (auto i = out.begin(); i != out.end(); ++i) *i = i == widest ? 1 : 0;
    return out;
  }
  if (static_cast<part_split>(roster.split) == part_split::equal) {
    for (auto& share : out) share = share > 0 ? 1 : 0;
    return out;
  }
  std::vector<double> rates;
  for (const auto& p : peers) rates.push_back(std::min(p.up, p.down));
  std::sort(rates.begin(), rates.end());
  const double most = most_of_median_rate * rates[(rates.size() - 1) / 2];
  for (std::size_t i = 0; i < peers.size(); ++i) {
    peers[i].up = std::min(peers[i].up, most);
    peers[i].down = std::min(peers[i].down, most);
    out[i] = std::min(out[i], most);
  }
  // If all members contribute and receive, a closed form gives the shares. Else fill_lines() does,
  // which without pair limits finds the linear program's optimum.
  if (std::all_of(peers.begin(), peers.end(),
                  [](const auto& p) { return p.contributes && p.receives; }))
    return kernels::balanced_shares(out);
  const auto plan = kernels::fill_lines(peers);
  return plan ? plan->shares : kernels::balanced_shares(out);
}

std::vector<std::uint64_t> boundaries_of(const group_begun& roster) {
  const auto shares = shares_of(roster);
  auto out = kernels::part_boundaries(roster.value_count - roster.second_values, shares);
  if (roster.second_values > 0) {
    const auto more = kernels::part_boundaries(roster.second_values, shares);
    out.insert(out.end(), more.begin(), more.end());
  }
  return out;
}

} // namespace shoal::actors
