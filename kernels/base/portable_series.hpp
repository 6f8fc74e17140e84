// The series of portable_math.cpp, which normals.cpp evaluates for many values at a time.
#pragma once

#include <array>
#include <cstddef>

namespace shoal::portable {

inline constexpr double ln2_high =
    6.93147180369123816490e-01; // 21 trailing zero bits: k * ln2_high is exact
inline constexpr double ln2_low = 1.90821492927058770002e-10;

template <std::size_t N>
constexpr double horner(const std::array<double, N>& coefficients, double x) {
  double sum = coefficients[N - 1];
  for (std::size_t i = N - 1; i-- > 0;) sum = sum * x + coefficients[i];
  return sum;
}

inline constexpr auto log_series = [] { // 2 / 3, 2 / 5, ...
  std::array<double, 11> out{};
  for (std::size_t j = 0; j < out.size(); ++j) out[j] = 2.0 / static_cast<double>(2 * j + 3);
  return out;
}();

inline constexpr auto inverse_factorials = [] {
  std::array<double, 18> out{};
  double factorial = 1;
  for (std::size_t n = 0; n < out.size(); ++n) {
    if (n > 1) factorial *= static_cast<double>(n);
    out[n] = 1.0 / factorial;
  }
  return out;
}();

inline constexpr auto exp_series = [] { // exp(r) = 1 + r + r^2 (1/2! + r/3! + ...)
  std::array<double, 13> out{};
  for (std::size_t n = 0; n < out.size(); ++n) out[n] = inverse_factorials[n + 2];
  return out;
}();

inline constexpr auto sine_series = [] { // sin(t) = t + t^3 (-1/3! + t^2/5! - ...)
  std::array<double, 7> out{};
  for (std::size_t n = 0; n < out.size(); ++n)
    out[n] = (n % 2 == 0 ? -1 : 1) * inverse_factorials[2 * n + 3];
  return out;
}();

inline constexpr auto cosine_series = [] { // cos(t) = 1 + t^2 (-1/2! + t^2/4! - ...)
  std::array<double, 8> out{};
  for (std::size_t n = 0; n < out.size(); ++n)
    out[n] = (n % 2 == 0 ? -1 : 1) * inverse_factorials[2 * n + 2];
  return out;
}();

} // namespace shoal::portable
