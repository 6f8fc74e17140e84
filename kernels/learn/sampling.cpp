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
  struct candidate {
    double value;
    std::size_t place;
  };
  // The first one of equal values comes first.
  const auto before = [](const candidate& a, const candidate& b) {
    return a.value != b.value ? a.value > b.value : a.place < b.place;
  };
  std::vector<candidate> order(logits.size());
  for (std::size_t i = 0; i < order.size(); ++i)
    order[i] = {std::isnan(logits[i]) ? -std::numeric_limits<double>::infinity()
                                      : static_cast<double>(logits[i]),
                i};
  const auto likeliest = std::min_element(order.begin(), order.end(), before);
  const double best = likeliest->value;
  if (options.temperature == 0 || !std::isfinite(best)) return likeliest->place;

  auto kept = options.top_k == 0 ? order.size() : std::min(options.top_k, order.size());
  // Only the candidates that may be drawn are put in order.
  const auto end = order.begin() + static_cast<std::ptrdiff_t>(kept);
  if (end != order.end()) std::nth_element(order.begin(), end, order.end(), before);
  std::sort(order.begin(), end, before);
  std::vector<double> weights(kept);
  for (std::size_t i = 0; i < kept; ++i)
    weights[i] = std::exp((order[i].value - best) / options.temperature);
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  double mass = 0;
  for (std::size_t i = 0; i < kept; ++i) {
    mass += weights[i];
    if (mass >= options.top_p * total) kept = i + 1;
  }
  double left = random.uniform() * mass;
  for (std::size_t i = 0; i < kept; ++i)
    if ((left -= weights[i]) < 0) return order[i].place;
  return order[kept - 1].place;
}

} // namespace shoal::learn
