#include "kernels/base/portable_math.hpp"

#include <array>
#include <cmath>
#include <limits>
#include <numbers>

// From <cmath> only frexp, ldexp, floor and the classifications are used: these are exact.
namespace shoal::portable {

namespace {

constexpr double ln2_high =
    6.93147180369123816490e-01; // 21 trailing zero bits: k * ln2_high is exact
constexpr double ln2_low = 1.90821492927058770002e-10;
constexpr double infinity = std::numeric_limits<double>::infinity();

template <std::size_t N>
double horner(const std::array<double, N>& coefficients, double x) {
  double sum = coefficients[N - 1];
  for (std::size_t i = N - 1; i-- > 0;)
    sum = sum * x + coefficients[i];
  return sum;
}

constexpr auto log_series = [] { // 2 / 3, 2 / 5, ...
  std::array<double, 11> out{};
  for (std::size_t j = 0; j < out.size(); ++j)
    out[j] = 2.0 / static_cast<double>(2 * j + 3);
  return out;
}();

constexpr auto inverse_factorials = [] {
  std::array<double, 18> out{};
  double factorial = 1;
  for (std::size_t n = 0; n < out.size(); ++n) {
    if (n > 1)
      factorial *= static_cast<double>(n);
    out[n] = 1.0 / factorial;
  }
  return out;
}();

constexpr auto exp_series = [] { // exp(r) = 1 + r + r^2 (1/2! + r/3! + ...)
  std::array<double, 13> out{};
  for (std::size_t n = 0; n < out.size(); ++n)
    out[n] = inverse_factorials[n + 2];
  return out;
}();

constexpr auto sine_series = [] { // sin(t) = t + t^3 (-1/3! + t^2/5! - ...)
  std::array<double, 7> out{};
  for (std::size_t n = 0; n < out.size(); ++n)
    out[n] = (n % 2 == 0 ? -1 : 1) * inverse_factorials[2 * n + 3];
  return out;
}();

constexpr auto cosine_series = [] { // cos(t) = 1 + t^2 (-1/2! + t^2/4! - ...)
  std::array<double, 8> out{};
  for (std::size_t n = 0; n < out.size(); ++n)
    out[n] = (n % 2 == 0 ? -1 : 1) * inverse_factorials[2 * n + 2];
  return out;
}();

double small_sine(double t) {
  return t + t * (t * t * horner(sine_series, t * t));
}
double small_cosine(double t) {
  return 1 + t * t * horner(cosine_series, t * t);
}

} // namespace

double log(double x) {
  if (std::isnan(x) || x < 0)
    return std::numeric_limits<double>::quiet_NaN();
  if (x == 0)
    return -infinity;
  if (x == infinity)
    return infinity;
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
  if (std::isnan(x))
    return x;
  if (x > 709.79)
    return infinity;
  if (x < -745.2)
    return 0;
  const double k = std::floor(x / std::numbers::ln2 + 0.5);
  const double r = (x - k * ln2_high) - k * ln2_low;
  const double value = 1 + (r + r * r * horner(exp_series, r));
  return std::ldexp(value, static_cast<int>(k));
}

double pow(double x, double y) {
  if (y == 0)
    return 1;
  if (x == 0)
    return y > 0 ? 0 : infinity;
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
