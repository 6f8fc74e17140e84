// The sum of the squares of a vector's values.
#pragma once

#include <span>

namespace shoal::kernels {

/// Adds in doubles, in 16 sums: value i goes to sum i % 16. The bits are the same on every CPU. NaN
/// if a value is no number.
double squared_norm(std::span<const float> values);

} // namespace shoal::kernels
