#include "netem/max_min_reference.hpp"

#include <algorithm>

namespace shoal::netem {

std::vector<double> max_min_reference(std::span<const double> capacities,
                                      std::span<const max_min_demand> flows) {
  std::vector<std::vector<std::size_t>> on_link(capacities.size());
  for (std::size_t f = 0; f < flows.size(); ++f)
    for (const auto& use : flows[f].path) on_link[static_cast<std::size_t>(use.link)].push_back(f);

  std::vector<double> left(capacities.begin(), capacities.end());
  std::vector<double> weight(capacities.size(), 0);
  std::vector<std::size_t> open(capacities.size(), 0);
  for (const auto& flow : flows)
    for (const auto& use : flow.path) {
      weight[static_cast<std::size_t>(use.link)] += use.amount * flow.weight;
      ++open[static_cast<std::size_t>(use.link)];
    }

  std::vector<std::size_t> by_cap(flows.size());
  for (std::size_t f = 0; f < flows.size(); ++f) by_cap[f] = f;
  const auto cap_level = [&](std::size_t f) { return flows[f].cap / flows[f].weight; };
  std::stable_sort(by_cap.begin(), by_cap.end(),
                   [&](std::size_t a, std::size_t b) { return cap_level(a) < cap_level(b); });

  std::vector<double> rate(flows.size(), -1);
  const auto freeze = [&](std::size_t f, double level) {
    rate[f] = level * flows[f].weight;
    for (const auto& use : flows[f].path) {
      const auto l = static_cast<std::size_t>(use.link);
      left[l] -= use.amount * rate[f];
      weight[l] -= use.amount * flows[f].weight;
      --open[l];
    }
  };

  std::size_t next_cap = 0;
  for (std::size_t frozen = 0; frozen < flows.size();) {
    std::size_t first = capacities.size();
    double level = unlimited;
    for (std::size_t l = 0; l < capacities.size(); ++l) {
      if (open[l] == 0) continue;
      const double fills = std::max(0.0, left[l]) / weight[l];
      if (fills < level) level = fills, first = l;
    }
    while (next_cap < flows.size() && rate[by_cap[next_cap]] >= 0) ++next_cap;
    if (next_cap < flows.size() && cap_level(by_cap[next_cap]) <= level) {
      freeze(by_cap[next_cap], cap_level(by_cap[next_cap]));
      ++frozen;
      continue;
    }
    if (first == capacities.size()) break;
    for (const auto f : on_link[first])
      if (rate[f] < 0) freeze(f, level), ++frozen;
  }
  for (auto& r : rate)
    if (r < 0) r = unlimited;
  return rate;
}

} // namespace shoal::netem
