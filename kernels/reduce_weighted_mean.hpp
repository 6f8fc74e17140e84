// The mean of float vectors weighted by samples, as one large batch would give it (DeDLOC).
//   mean[j] = sum_i weight[i] * x[i][j] / sum_i weight[i], over the k contributions added
// The sums are doubles: a float times a weight below 2^29 is exact in them.
// Error: |mean'[j] - mean[j]| <= 2^-24 |mean[j]| + (k + 2) 2^-53 sum_i weight[i] |x[i][j]| / sum_i
// weight[i]. The same order of add calls gives the same bits; another order may differ in the last
// place. Source: Diskin et al., "Distributed Deep Learning in Open Collaborations",
// arXiv:2106.10207.
#pragma once

#include "kernels/reducer.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_set>
#include <vector>

namespace shoal::kernels {

/// Keeps 8 bytes per element, however many contributions. Complexity: add and finish are O(size()).
class weighted_mean_reducer final : public reducer {
public:
  /// Weights outside these cannot be anybody's number of samples and could overflow the sums.
  static constexpr double smallest_weight = 1e-30;
  static constexpr double largest_weight = 1e30;

  explicit weighted_mean_reducer(std::size_t size);

  /// Errors, besides those of reducer: a weight that is not finite or not positive (or outside the
  /// limits above), a value that is NaN or infinite.
  result<void> add(std::uint32_t sender, double weight, std::span<const float> values) override;
  /// Errors: nothing was added.
  result<std::vector<float>> finish() override;
  std::size_t size() const noexcept override { return sums_.size(); }
  std::span<const contribution> contributions() const noexcept override { return contributions_; }

private:
  std::vector<double> sums_;
  std::vector<contribution> contributions_;
  std::unordered_set<std::uint32_t> known_; // membership only, never iterated
};

/// One contribution to weighted_mean and weighted_mean_reference.
struct weighted_values {
  double weight = 0;
  std::span<const float> values;
};

/// The same formula in one pass over memory, for contributions that are all here: block by block, so
/// that the sums stay in the first-level cache and each input is read once.
/// Writes out[n] = the bits that weighted_mean_reducer gives for the same inputs in the same order,
/// and returns inputs.size(); or the index of the first input that holds a value that is not finite
/// (then `out` is of no use). Requires: not empty, weights within the reducer's limits, all of out's
/// size, no aliasing. Complexity: reads 4 k n bytes, writes 4 n.
std::size_t weighted_mean(std::span<const weighted_values> inputs, std::span<float> out);
bool all_finite(std::span<const float> values);

/// Specifies the reducer: the formula above, element by element, in long double. Slow; for tests.
/// Requires: not empty, positive finite weights, equal sizes.
std::vector<float> weighted_mean_reference(std::span<const weighted_values> inputs);

} // namespace shoal::kernels
