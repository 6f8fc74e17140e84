#include "kernels/learn/sampling.hpp"

#include "kernels/base/check.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

namespace shoal::learn {

result<void> validate(const sampling_options& options) {
  if (!std::isfinite(options.temperature) || options.temperature < 0)
    return failure{"sampling: temperature must be finite and not negative, not " +
                   std::to_string(options.temperature)};
  if (!(options.top_p > 0 && options.top_p <= 1))
    return failure{"sampling: top_p must be above 0 and at most 1, not " +
                   std::to_string(options.top_p)};
  return {};
}

std::size_t choose(std::span<const float> logits, const sampling_options& options, rng& random) {
  SHOAL_CHECK(!logits.empty(), "there are logits to choose from");
  auto value = [&](std::size_t i) {
    return std::isnan(logits[i]) ? -std::numeric_limits<double>::infinity()
                                 : static_cast<double>(logits[i]);
  };
  std::vector<std::size_t> order(logits.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return value(a) > value(b); });
  const double best = value(order.front());
  if (options.temperature == 0 || !std::isfinite(best)) return order.front();

  auto kept = options.top_k == 0 ? order.size() : std::min(options.top_k, order.size());
  std::vector<double> weights(kept);
  for (std::size_t i = 0; i < kept; ++i)
    weights[i] = std::exp((value(order[i]) - best) / options.temperature);
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  double mass = 0;
  for (std::size_t i = 0; i < kept; ++i) {
    mass += weights[i];
    if (mass >= options.top_p * total) kept = i + 1;
  }
  double left = random.uniform() * mass;
  for (std::size_t i = 0; i < kept; ++i)
    if ((left -= weights[i]) < 0) return order[i];
  return order[kept - 1];
}

} // namespace shoal::learn
