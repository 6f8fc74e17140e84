// Steps before a robust aggregator that make the contributions more alike. Each result is a mean of
// some of the contributions, so a step is a list of mixtures.
//
// Bucketing: a permutation puts the contributions into buckets of s, the last of which may be
// smaller. Each bucket is replaced by its mean. Source: Karimireddy et al., "Byzantine-Robust
// Learning on Heterogeneous Datasets via Bucketing", ICLR 2022, arXiv:2006.09365, algorithm 1.
//
// Nearest-neighbour mixing: each contribution is replaced by the mean of its k - f nearest ones,
// itself included. Source: Allouah et al., "Fixing by Mixing: A Recipe for Optimal Byzantine ML
// under Heterogeneity", AISTATS 2023, arXiv:2302.01772, algorithm 2.
#pragma once

#include "kernels/reduce_weighted_mean.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace shoal::kernels {

/// The inputs of a mean that is weighted by samples, and its weight.
struct mixture {
  std::vector<std::size_t> of; ///< ascending indices
  double weight = 0;           ///< bucketing: the sum over `of`; mixing: that of the input itself
};

/// Requires: `order` is a permutation of the inputs' indices; bucket_size > 0.
std::vector<mixture> buckets(std::span<const weighted_values> inputs,
                             std::span<const std::size_t> order, std::size_t bucket_size);
/// A permutation that the seed and the names decide. Without one name, the others stay in order.
std::vector<std::size_t> shuffled_order(std::span<const std::uint64_t> names, std::uint64_t seed);

/// At least one contribution is in each mixture. The lower index wins a tie.
std::vector<mixture> nearest_mixtures(std::span<const weighted_values> inputs, std::size_t faulty);

/// Writes the mean of a mixture to `out` [d]. `Out` is float or double.
template <class Out>
void mix(std::span<const weighted_values> inputs, const mixture& what, std::span<Out> out);

} // namespace shoal::kernels
