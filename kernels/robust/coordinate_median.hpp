// The median of the contributions at each coordinate. Every contribution counts once, whatever its
// weight. With fewer than half of them faulty, each value lies between two honest values.
// Source: Yin et al., "Byzantine-Robust Distributed Learning: Towards Optimal Statistical Rates",
// ICML 2018, arXiv:1803.01498, definition 1.
#pragma once

#include "kernels/reduce_weighted_mean.hpp"

#include <cstdint>
#include <span>

namespace shoal::kernels {

/// The median of an even number of values.
enum class middle : std::uint8_t {
  lower, ///< the lower of the two in the middle
  mean,  ///< the mean of both
};

/// Writes the medians of the inputs' values to `out` [d]. `Out` is float or double.
/// Requires: not empty, finite values of out's size. Complexity: k log(k)^2 / 4 comparisons for
/// each coordinate; reads 4 k d bytes.
template <class Out>
void coordinate_median(std::span<const weighted_values> inputs, middle which, std::span<Out> out);

} // namespace shoal::kernels
