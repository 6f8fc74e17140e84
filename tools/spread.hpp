// The mean and the standard deviation of figures from several seeds.
#pragma once

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
  spread out;
  double sum = 0, squares = 0;
  for (const double x : values) {
    if (!std::isfinite(x)) {
      ++out.diverged;
      continue;
    }
    ++out.count;
    sum += x;
  }
  if (out.count > 0) out.mean = sum / static_cast<double>(out.count);
  for (const double x : values)
    if (std::isfinite(x)) squares += (x - out.mean) * (x - out.mean);
  if (out.count > 1) out.deviation = std::sqrt(squares / static_cast<double>(out.count - 1));
  return out;
}

} // namespace shoal::tools
