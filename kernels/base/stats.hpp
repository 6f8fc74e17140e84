// Small statistics used everywhere: exponential moving average with bias correction, quantiles.
#pragma once

#include <cstddef>
#include <span>

namespace shoal {

/// Exponential moving average; the first values are not pulled towards zero:
/// ema_k = sum_j alpha (1-alpha)^(k-j) x_j / (1 - (1-alpha)^k).
class ema {
public:
  explicit ema(double alpha = 0.1) : alpha_(alpha) {}
  void add(double value);
  bool empty() const noexcept { return count_ == 0; }
  /// 0 before the first value.
  double value() const;
  std::size_t count() const noexcept { return count_; }

private:
  double alpha_;
  double raw_ = 0;
  double kept_ = 1; // (1 - alpha)^count
  std::size_t count_ = 0;
};

/// Linear interpolation between order statistics (type 7). Requires: values not empty, 0 <= q <= 1.
double quantile(std::span<const double> values, double q);
inline double median(std::span<const double> values) {
  return quantile(values, 0.5);
}
/// NaN without values. The variance is NaN then, too.
double mean(std::span<const double> values);
/// Population variance.
double variance(std::span<const double> values);

} // namespace shoal
