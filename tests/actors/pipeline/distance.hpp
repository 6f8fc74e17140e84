// How far two gradients are from each other.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

namespace shoal::actors::testing {

/// The norm of the difference as a fraction of the norm of `right`.
inline double distance(const std::vector<float>& left, const std::vector<float>& right) {
  double error = 0, norm = 0;
  for (std::size_t i = 0; i < left.size(); ++i) {
    const double d = static_cast<double>(left[i]) - static_cast<double>(right[i]);
    error += d * d;
    norm += static_cast<double>(right[i]) * static_cast<double>(right[i]);
  }
  return std::sqrt(error / norm);
}

} // namespace shoal::actors::testing
