// Passes over the contributions to a unit: products, distances and linear combinations.
// All sums are doubles in a fixed order, so the bits depend on the inputs alone and are the same on
// every CPU. Inputs are floats of one size [d]; k is their number.
#pragma once

#include "kernels/reduce_weighted_mean.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace shoal::kernels {

/// A symmetric matrix [k, k] in rows, such as products or squared distances of k vectors.
struct square_matrix {
  std::size_t size = 0;
  std::vector<double> values{};

  explicit square_matrix(std::size_t of) : size(of), values(of * of) {}
  double& at(std::size_t i, std::size_t j) { return values[i * size + j]; }
  double at(std::size_t i, std::size_t j) const { return values[i * size + j]; }
};

/// The products <x_i - center, x_j - center> of all pairs. Requires: center [d].
/// Error: of each product below (d / 8 + 2) 2^-52 |x_i - center| |x_j - center|.
/// Complexity: reads 4 k d bytes once; k (k + 1) d / 2 multiplications.
square_matrix centered_products(std::span<const weighted_values> inputs,
                                std::span<const double> center);

/// The squared distances |x_i - x_j|^2 of all pairs, without cancellation.
/// Error: below (d / 8 + 2) 2^-52 of each. Complexity: as centered_products().
square_matrix squared_distances(std::span<const weighted_values> inputs);

/// |x - center|^2. Error: below (d / 8 + 2) 2^-52 of it.
double squared_distance(std::span<const float> x, std::span<const double> center);

/// out = center + sum_i factor[i] (x_i - center). `Out` is float or double.
/// Requires: factors [k], center and out [d].
template <class Out>
void combine_around(std::span<const double> center, std::span<const weighted_values> inputs,
                    std::span<const double> factors, std::span<Out> out);

/// out = sum_i factor[i] x_i. `Out` is float or double. Requires: factors [k], out [d].
/// Error: (k + 1) 2^-53 sum_i |factor[i] x_i|, and the rounding to `Out`.
template <class Out>
void combine(std::span<const weighted_values> inputs, std::span<const double> factors,
             std::span<Out> out);

} // namespace shoal::kernels
