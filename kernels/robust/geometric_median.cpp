#include "kernels/robust/geometric_median.hpp"

#include "kernels/base/check.hpp"
#include "kernels/robust/coordinate_median.hpp"
#include "kernels/robust/vector_passes.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace shoal::kernels {

template <class Out>
weiszfeld_outcome geometric_median(std::span<const weighted_values> inputs,
                                   std::span<const double> start, const weiszfeld_limits& until,
                                   std::span<Out> out) {
  SHOAL_CHECK(!inputs.empty() && until.smoothing > 0, "a median of inputs, with smoothing");
  std::vector<double> at(start.begin(), start.end()), next(out.size());
  if (at.empty()) {
    at.resize(out.size());
    coordinate_median<double>(inputs, middle::lower, at);
  }
  weiszfeld_outcome outcome;
  std::vector<double> factors(inputs.size());
  while (outcome.iterations < until.iterations && !outcome.converged) {
    double all = 0, distances = 0;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const double distance = std::sqrt(squared_distance(inputs[i].values, at));
      distances += distance / static_cast<double>(inputs.size());
      factors[i] = inputs[i].weight / std::max(until.smoothing, distance);
      all += factors[i];
    }
    for (auto& factor : factors) factor /= all;
    combine<double>(inputs, factors, next);
    double step = 0;
    for (std::size_t j = 0; j < at.size(); ++j) step += (next[j] - at[j]) * (next[j] - at[j]);
    at.swap(next);
    outcome.converged = std::sqrt(step) <= until.tolerance * distances;
    ++outcome.iterations;
  }
  for (std::size_t j = 0; j < out.size(); ++j) out[j] = static_cast<Out>(at[j]);
  return outcome;
}

template weiszfeld_outcome geometric_median(std::span<const weighted_values>,
                                            std::span<const double>, const weiszfeld_limits&,
                                            std::span<float>);
template weiszfeld_outcome geometric_median(std::span<const weighted_values>,
                                            std::span<const double>, const weiszfeld_limits&,
                                            std::span<double>);

} // namespace shoal::kernels
