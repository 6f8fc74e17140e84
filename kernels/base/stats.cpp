#include "kernels/base/stats.hpp"

#include "kernels/base/check.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace shoal {

void ema::add(double value) {
  SHOAL_CHECK(alpha_ > 0 && alpha_ <= 1, "ema needs 0 < alpha <= 1");
  raw_ = (1 - alpha_) * raw_ + alpha_ * value;
  kept_ *= 1 - alpha_;
  ++count_;
}

double ema::value() const {
  return count_ == 0 ? 0 : raw_ / (1 - kept_);
}

double quantile(std::span<const double> values, double q) {
  SHOAL_CHECK(!values.empty(), "no values have no quantile");
  SHOAL_CHECK(q >= 0 && q <= 1, "a quantile is between 0 and 1");
  std::vector<double> sorted(values.begin(), values.end());
  // NaN goes last, so that std::sort has a valid order for all measurements.
  std::sort(sorted.begin(), sorted.end(),
            [](double a, double b) { return std::isnan(b) ? !std::isnan(a) : a < b; });
  const double position = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const double part = position - static_cast<double>(below);
  if (part == 0 || below + 1 == sorted.size()) return sorted[below];
  return sorted[below] + part * (sorted[below + 1] - sorted[below]);
}

double mean(std::span<const double> values) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

double variance(std::span<const double> values) {
  const double center = mean(values);
  double sum = 0;
  for (const double value : values) sum += (value - center) * (value - center);
  return sum / static_cast<double>(values.size());
}

} // namespace shoal
