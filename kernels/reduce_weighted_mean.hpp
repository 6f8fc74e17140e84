// The mean of float vectors weighted by samples, as one large batch would give it (DeDLOC).
//   mean[j] = sum_i weight[i] * x[i][j] / sum_i weight[i], over k contributions
// The sums are doubles: a float times a weight below 2^29 is exact in them.
// Error: |mean'[j] - mean[j]| <= 2^-24 |mean[j]| + (k + 2) 2^-53 sum_i weight[i] |x[i][j]| / sum_i
// weight[i]. The same order of inputs gives the same bits; another order may differ in the last
// place. Source: Diskin et al., "Distributed Deep Learning in Open Collaborations",
// arXiv:2106.10207.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace shoal::kernels {

/// Weights outside this range are no number of samples, and could overflow the sums.
inline constexpr double smallest_weight = 1e-30;
inline constexpr double largest_weight = 1e30;

/// One contribution to weighted_mean and weighted_mean_reference.
struct weighted_values {
  double weight = 0;
  std::span<const float> values;
};

/// One pass over memory, block by block, so that the sums stay in the first-level cache and each
/// input is read once. Writes out[n] and returns inputs.size(). If an input holds a value that is
/// not finite, it returns the index of the first such input, and `out` is unspecified.
/// Requires: not empty, weights within [smallest_weight, largest_weight], all of out's size, no
/// aliasing. Complexity: reads 4 k n bytes, writes 4 n.
std::size_t weighted_mean(std::span<const weighted_values> inputs, std::span<float> out);
bool all_finite(std::span<const float> values);

/// Specifies weighted_mean: the formula above, element by element, in long double. Slow; for tests.
/// Requires: not empty, positive finite weights, equal sizes.
std::vector<float> weighted_mean_reference(std::span<const weighted_values> inputs);

} // namespace shoal::kernels
