#include "kernels/base/student_t.hpp"

#include "kernels/base/check.hpp"
#include "kernels/base/stats.hpp"

#include <cmath>
#include <numbers>

namespace shoal {

namespace {

/// P(|T| < t), with t = sqrt(degrees) tan(angle).
double student_within(double angle, std::size_t degrees) {
  const double sine = std::sin(angle), cosine = std::cos(angle);
  const bool odd = degrees % 2 == 1;
  double term = odd ? cosine : 1, sum = degrees == 1 ? 0 : term;
  for (std::size_t k = odd ? 3 : 2; k < degrees; k += 2) {
    term *= cosine * cosine * static_cast<double>(k - 1) / static_cast<double>(k);
    sum += term;
  }
  return odd ? 2 / std::numbers::pi * (angle + sine * sum) : sine * sum;
}

} // namespace

double student_t_975(std::size_t degrees) {
  SHOAL_CHECK(degrees > 0, "Student's t needs a degree of freedom");
  const auto n = static_cast<double>(degrees);
  if (degrees > 200) {
    // The expansion of the quantile about that of the normal distribution.
    const double x = 1.959963984540054, x2 = x * x;
    const double g1 = x * (x2 + 1) / 4, g2 = x * ((5 * x2 + 16) * x2 + 3) / 96,
                 g3 = x * (((3 * x2 + 19) * x2 + 17) * x2 - 15) / 384,
                 g4 = x * ((((79 * x2 + 776) * x2 + 1482) * x2 - 1920) * x2 - 945) / 92160;
    return x + (g1 + (g2 + (g3 + g4 / n) / n) / n) / n;
  }
  double low = 0, high = std::numbers::pi / 2;
  for (int step = 0; step < 60; ++step) {
    const double middle = (low + high) / 2;
    (student_within(middle, degrees) < 0.95 ? low : high) = middle;
  }
  return std::sqrt(n) * std::tan((low + high) / 2);
}

std::optional<double> half_width_of_mean(std::span<const double> values) {
  if (values.size() < 2) return std::nullopt;
  const std::size_t degrees = values.size() - 1;
  return student_t_975(degrees) * std::sqrt(variance(values) / static_cast<double>(degrees));
}

} // namespace shoal
