// CenteredClip: the fixed point v of
//   v <- v + (1 / W) sum_i w_i (x_i - v) min(1, r_i / |x_i - v|),   W = sum_i w_i
// from the coordinate-wise lower median. A contribution farther from v than its radius r_i pulls as
// one at distance r_i does. The fixed point minimizes the convex function
//   sum_i w_i h_i(|x_i - v|),  h_i(t) = t^2 / 2 up to r_i, and r_i (t - r_i / 2) beyond.
// Sources: Karimireddy et al., "Learning from History for Byzantine Robust Optimization", ICML
// 2021, arXiv:2012.10333, section 4; iterated to the fixed point: Gorbunov et al., "Secure
// Distributed Training at Scale", ICML 2022, arXiv:2106.11257, algorithm 2.
//
// The iterations run in the coefficients a of v = v0 + sum_i a_i (x_i - v0), with the products of
// all pairs <x_i - v0, x_j - v0>. So the vectors are read three times, however many iterations the
// fixed point takes: once each for the median, the products and the result.
#pragma once

#include "kernels/reduce_weighted_mean.hpp"

#include <cstddef>
#include <span>

namespace shoal::kernels {

struct clip_limits {
  std::size_t iterations = 500;
  /// The iterations end once a step is at most this fraction of the smallest radius.
  double tolerance = 1e-9;
};

struct clip_outcome {
  std::size_t iterations = 0;
  /// An upper bound of the last step's length.
  double last_step = 0;
  bool converged = false;
};

/// Writes the fixed point to `out` [d]. `Out` is float or double. `radii` [k] are positive. If
/// `start` is empty, the iterations start at the coordinate-wise lower median.
/// Requires: not empty, finite values of out's size, positive weights. The same order of inputs
/// gives the same bits.
/// Error: of each iteration about k (d / 8 + 2) 2^-52 of the radii.
/// Complexity: k (k + 1) d / 2 multiplications, and k^2 for each iteration.
template <class Out>
clip_outcome centered_clip(std::span<const weighted_values> inputs, std::span<const double> radii,
                           std::span<const double> start, const clip_limits& until,
                           std::span<Out> out);

/// The radius for `length` values of a vector of `total`, for a contribution of `samples`:
///   radius sqrt(length / total) sqrt(batch / samples)
/// `radius` belongs to the whole vector and to a contribution of `batch` samples. The roots are
/// those of the deviation of a mean. `batch` 0: the samples do not matter.
/// Requires: positive numbers, but for `batch`; length <= total.
double clip_radius(double radius, std::size_t length, std::size_t total, double batch,
                   double samples);

} // namespace shoal::kernels
