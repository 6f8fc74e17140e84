// The mean and the standard deviation of figures from several seeds.
#pragma once

#include "kernels/base/stats.hpp"

#include <cmath>
#include <cstddef>
#include <vector>

namespace shoal::tools {

struct spread {
  double mean = 0, deviation = 0; ///< over the finite values
  std::size_t diverged = 0;       ///< values that are not finite
  std::size_t count = 0;          ///< finite values
};

inline spread of_values(const std::vector<double>& values) {
  std::vector<double> finite;
  for (const double x : values)
    if (std::isfinite(x)) finite.push_back(x);
  spread out;
  out.count = finite.size();
  out.diverged = values.size() - finite.size();
  if (out.count == 0) return out;
  const auto n = static_cast<double>(out.count);
  out.mean = shoal::mean(finite);
  if (out.count > 1) out.deviation = std::sqrt(variance(finite) * n / (n - 1));
  return out;
}

} // namespace shoal::tools
