// The search for the nearest of many vectors of equal width, and a choice of vectors that are far
// from each other. The code of a vector is the place of its nearest entry.
// Source of the choice: Arthur and Vassilvitskii, "k-means++" (2007).
#pragma once

#include "kernels/base/rng.hpp"
#include "kernels/learn/tokens.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace shoal::learn {

/// Entries as columns, so that one pass over them fills whole vector registers.
class nearest_entry {
public:
  /// Requires: `entries` [count, width].
  nearest_entry(std::span<const float> entries, std::size_t width);

  /// The nearest entry to x: the smallest |c|^2 / 2 - x c; of equally near ones the first.
  std::size_t find(const float* x);

private:
  std::size_t width_, count_;
  std::vector<float> columns_, half_, scores_;
};

/// The code of each vector. Requires: `vectors` [any, width], `entries` [count, width].
std::vector<token_id> codes_of(std::span<const float> vectors, std::span<const float> entries,
                               std::size_t width);

/// The entry of each code [codes, width]. Requires: `entries` [count, width], codes below count.
std::vector<float> entries_of(std::span<const token_id> codes, std::span<const float> entries,
                              std::size_t width);

/// The squared distance of two vectors.
double squared_distance(const float* a, const float* b, std::size_t width);

/// `count` of the vectors one behind the other, drawn one by one. Each has a probability
/// proportional to its weight times its squared distance from the earlier ones, and the first any.
/// Vectors repeat where too few are different. Requires: a vector; `vectors` [weights.size(),
/// width].
std::vector<float> spread_entries(std::span<const float> vectors, std::span<const double> weights,
                                  std::size_t width, std::size_t count, rng& random);

} // namespace shoal::learn
