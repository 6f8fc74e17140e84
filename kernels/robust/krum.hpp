// Krum and multi-Krum choose contributions that have close neighbours. With f faulty ones of k, the
// score of a contribution is the sum of its squared distances to its k - f - 2 nearest others.
// Krum's result is the contribution with the lowest score. Multi-Krum's is the mean of the m
// contributions with the lowest scores, weighted by samples.
// Source: Blanchard et al., "Machine Learning with Adversaries: Byzantine Tolerant Gradient
// Descent", NIPS 2017, arXiv:1703.02757, sections 4 and 5. Its guarantee needs k > 2 f + 2.
#pragma once

#include "kernels/reduce_weighted_mean.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace shoal::kernels {

/// The indices of the `chosen` contributions with the lowest scores, ascending. The lower index
/// wins a tie. At least one neighbour counts, also if f is too large.
/// Requires: not empty, finite values of one size, 0 < chosen.
std::vector<std::size_t> lowest_krum_scores(std::span<const weighted_values> inputs,
                                            std::size_t faulty, std::size_t chosen);

/// Writes the weighted mean of the `chosen` contributions to `out` [d]; with `chosen` 1 this is
/// Krum. `Out` is float or double. Complexity: k (k - 1) d / 2 distances.
template <class Out>
void multi_krum(std::span<const weighted_values> inputs, std::size_t faulty, std::size_t chosen,
                std::span<Out> out);

} // namespace shoal::kernels
