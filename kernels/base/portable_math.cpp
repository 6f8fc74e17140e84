#include "kernels/base/portable_math.hpp"

#include "kernels/base/portable_series.hpp"

#include <cmath>
#include <limits>
#include <numbers>

// From <cmath> these functions use only frexp, ldexp, floor and the classifications, which are
// exact.
namespace shoal::portable {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

double small_sine(double t) {
  return t + t * (t * t * horner(sine_series, t * t));
}
double small_cosine(double t) {
  return 1 + t * t * horner(cosine_series, t * t);
}

} // namespace

double log(double x) {
  if (std::isnan(x) || x < 0) return std::numeric_limits<double>::quiet_NaN();
  if (x == 0) return -infinity;
  if (x == infinity) return infinity;
  int exponent = 0;
  double m = std::frexp(x, &exponent);
  if (m < 0.5 * std::numbers::sqrt2) {
    m *= 2;
    --exponent;
  }
  const double k = exponent;
  const double f = m - 1;
  const double s = f / (2 + f);
  const double z = s * s;
  const double r = z * horner(log_series, z);
  return k * ln2_high - ((s * (f - r) - k * ln2_low) - f);
}

double exp(double x) {
  if (std::isnan(x)) return x;
  if (x > 709.79) return infinity;
  if (x < -745.2) return 0;
  const double k = std::floor(x / std::numbers::ln2 + 0.5);
  const double r = (x - k * ln2_high) - k * ln2_low;
  const double value = 1 + (r + r * r * horner(exp_series, r));
  return std::ldexp(value, static_cast<int>(k));
}

double pow(double x, double y) {
  if (y == 0) return 1;
  if (x == 0) return y > 0 ? 0 : infinity;
  return exp(y * log(x));
}

double cos_turns(double x) {
  const double turn = x - std::floor(x);
  const double quarter = std::floor(4 * turn + 0.5);
  const double t = 2 * std::numbers::pi * (turn - quarter / 4);
  switch (static_cast<int>(quarter) % 4) {
  case 0:
    return small_cosine(t);
  case 1:
    return -small_sine(t);
  case 2:
    return -small_cosine(t);
  default:
    return small_sine(t);
  }
}

double sin_turns(double x) {
  const double turn = x - std::floor(x);
  const double quarter = std::floor(4 * turn + 0.5);
  const double t = 2 * std::numbers::pi * (turn - quarter / 4);
  switch (static_cast<int>(quarter) % 4) {
  case 0:
    return small_sine(t);
  case 1:
    return small_cosine(t);
  case 2:
    return -small_sine(t);
  default:
    return -small_cosine(t);
  }
}

} // namespace shoal::portable
