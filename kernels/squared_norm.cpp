#include "kernels/squared_norm.hpp"

#include "kernels/base/wider.hpp"

#include <array>
#include <cstring>

namespace shoal::kernels {

namespace {

constexpr std::size_t sum_count = 16;

// A single sum would wait for each addition. These are vectors, because the compiler leaves the
// order of sums alone and so makes none of its own.
using four_floats = float __attribute__((vector_size(16)));
using four_doubles = double __attribute__((vector_size(32)));

/// Requires: size is a multiple of sum_count.
SHOAL_WIDER void add_squares(const float* values, std::size_t size, double* into) {
  std::array<four_doubles, sum_count / 4> sums{};
  for (std::size_t i = 0; i < size; i += sum_count)
    for (std::size_t k = 0; k < sums.size(); ++k) {
      four_floats x;
      std::memcpy(&x, values + i + 4 * k, sizeof(x));
      const auto wide = __builtin_convertvector(x, four_doubles);
      sums[k] += wide * wide;
    }
  std::memcpy(into, sums.data(), sizeof(sums));
}

} // namespace

double squared_norm(std::span<const float> values) {
  std::array<double, sum_count> sums;
  const auto whole = values.size() / sum_count * sum_count;
  add_squares(values.data(), whole, sums.data());
  for (std::size_t i = whole; i < values.size(); ++i) {
    const auto x = static_cast<double>(values[i]);
    sums[i % sum_count] += x * x;
  }
  double out = 0;
  for (const auto sum : sums) out += sum;
  return out;
}

} // namespace shoal::kernels
