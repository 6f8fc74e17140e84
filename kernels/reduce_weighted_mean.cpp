#include "kernels/reduce_weighted_mean.hpp"

#include "kernels/base/check.hpp"
#include "kernels/base/wider.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

namespace shoal::kernels {

namespace {

/// Whether any value has an exponent of ones: infinite or NaN. The function works on integers,
/// because sums of floats would not be vectorized.
SHOAL_WIDER bool any_not_finite(const float* x, std::size_t n) {
  std::uint32_t found = 0;
  for (std::size_t j = 0; j < n; ++j) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(x[j]) & 0x7f800000U;
    found |= static_cast<std::uint32_t>(bits == 0x7f800000U);
  }
  return found != 0;
}

SHOAL_WIDER void clear(double* sums, std::size_t n) {
  for (std::size_t j = 0; j < n; ++j) sums[j] = 0.0;
}
SHOAL_WIDER void add_one(double* sums, const weighted_values& a, std::size_t at, std::size_t n) {
  const float* const x = a.values.data() + at;
  for (std::size_t j = 0; j < n; ++j) sums[j] += a.weight * static_cast<double>(x[j]);
}
/// Four inputs in one pass over the sums; each sum still takes them one after the other.
SHOAL_WIDER void add_four(double* sums, const weighted_values* of, std::size_t at, std::size_t n) {
  const float *const x = of[0].values.data() + at, *const y = of[1].values.data() + at;
  const float *const z = of[2].values.data() + at, *const u = of[3].values.data() + at;
  const double a = of[0].weight, b = of[1].weight, c = of[2].weight, d = of[3].weight;
  for (std::size_t j = 0; j < n; ++j) {
    double sum = sums[j] + a * static_cast<double>(x[j]);
    sum += b * static_cast<double>(y[j]);
    sum += c * static_cast<double>(z[j]);
    sums[j] = sum + d * static_cast<double>(u[j]);
  }
}
/// Whether a quotient is not finite.
SHOAL_WIDER bool divide(const double* sums, double total, float* out, std::size_t n) {
  std::uint32_t found = 0;
  for (std::size_t j = 0; j < n; ++j) {
    const auto x = static_cast<float>(sums[j] / total);
    out[j] = x;
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(x) & 0x7f800000U;
    found |= static_cast<std::uint32_t>(bits == 0x7f800000U);
  }
  return found != 0;
}

/// 8 KiB of sums, beside which a block of each of four inputs fits into the first-level cache.
constexpr std::size_t block_size = 1024;

} // namespace

bool all_finite(std::span<const float> values) {
  return !any_not_finite(values.data(), values.size());
}

std::size_t weighted_mean(std::span<const weighted_values> inputs, std::span<float> out) {
  SHOAL_CHECK(!inputs.empty(), "a mean needs inputs");
  double total = 0;
  for (const weighted_values& input : inputs) {
    SHOAL_CHECK(input.values.size() == out.size(), "inputs have one size");
    total += input.weight;
  }
  alignas(64) std::array<double, block_size> sums;
  bool suspicious = false;
  for (std::size_t at = 0; at < out.size(); at += block_size) {
    const std::size_t n = std::min(block_size, out.size() - at);
    clear(sums.data(), n);
    std::size_t i = 0;
    for (; i + 4 <= inputs.size(); i += 4) add_four(sums.data(), inputs.data() + i, at, n);
    for (; i < inputs.size(); ++i) add_one(sums.data(), inputs[i], at, n);
    suspicious = divide(sums.data(), total, out.data() + at, n) || suspicious;
  }
  // An input that is not finite makes the mean not finite, so inputs are searched only then.
  for (std::size_t i = 0; suspicious && i < inputs.size(); ++i)
    if (!all_finite(inputs[i].values)) return i;
  return inputs.size();
}

std::vector<float> weighted_mean_reference(std::span<const weighted_values> inputs) {
  SHOAL_CHECK(!inputs.empty(), "a mean needs inputs");
  std::vector<float> out(inputs.front().values.size());
  for (std::size_t j = 0; j < out.size(); ++j) {
    long double sum = 0, weights = 0;
    for (const weighted_values& input : inputs) {
      sum += static_cast<long double>(input.weight) * input.values[j];
      weights += input.weight;
    }
    out[j] = static_cast<float>(sum / weights);
  }
  return out;
}

} // namespace shoal::kernels
