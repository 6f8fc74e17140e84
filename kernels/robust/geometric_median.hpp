// The geometric median: the point with the least weighted sum of distances to the contributions,
//   argmin_z sum_i w_i |x_i - z|
// by the smoothed Weiszfeld iteration
//   z <- sum_i b_i x_i / sum_i b_i,   b_i = w_i / max(smoothing, |x_i - z|)
// Sources: Weiszfeld, Tohoku Mathematical Journal 43, 1937; Pillutla et al., "Robust Aggregation
// for Federated Learning", arXiv:1912.13445, algorithm 2.
#pragma once

#include "kernels/reduce_weighted_mean.hpp"

#include <cstddef>
#include <span>

namespace shoal::kernels {

struct weiszfeld_limits {
  double smoothing = 1e-6; ///< above 0
  std::size_t iterations = 200;
  /// The iterations end once a step is at most this fraction of the mean distance to the inputs.
  double tolerance = 1e-9;
};

struct weiszfeld_outcome {
  std::size_t iterations = 0;
  bool converged = false;
};

/// Writes the median to `out` [d]. `Out` is float or double. If `start` is empty, the iterations
/// start at the coordinate-wise lower median.
/// Requires: not empty, finite values of out's size, positive weights. Complexity: reads 8 k d
/// bytes in each iteration.
template <class Out>
weiszfeld_outcome geometric_median(std::span<const weighted_values> inputs,
                                   std::span<const double> start, const weiszfeld_limits& until,
                                   std::span<Out> out);

} // namespace shoal::kernels
