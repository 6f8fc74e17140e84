// The mean at each coordinate without the f smallest and the f largest values:
//   out[j] = sum of the values of ranks f + 1 to k - f at coordinate j, divided by k - 2 f
// Every contribution counts once, whatever its weight.
// Source: Yin et al., "Byzantine-Robust Distributed Learning: Towards Optimal Statistical Rates",
// ICML 2018, arXiv:1803.01498, definition 2.
#pragma once

#include "kernels/reduce_weighted_mean.hpp"

#include <cstddef>
#include <span>

namespace shoal::kernels {

/// Writes the trimmed means to `out` [d]. `Out` is float or double. Above (k - 1) / 2, `trimmed` is
/// that number, and the result is the median.
/// Requires: not empty, finite values of out's size. Error: k 2^-53 of the largest magnitude that
/// is not trimmed, and the rounding to `Out`. Complexity: as coordinate_median().
template <class Out>
void trimmed_mean(std::span<const weighted_values> inputs, std::size_t trimmed, std::span<Out> out);

} // namespace shoal::kernels
