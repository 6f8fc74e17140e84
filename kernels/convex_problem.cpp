#include "kernels/convex_problem.hpp"

#include "kernels/base/check.hpp"
#include "kernels/base/portable_math.hpp"

#include <algorithm>

namespace shoal::kernels {

std::vector<double> log_spaced(std::size_t count, double condition) {
  SHOAL_CHECK(condition >= 1, "the smallest number is not above the largest");
  std::vector<double> out(count, 1.0);
  for (std::size_t i = 0; i + 1 < count; ++i)
    out[i] = portable::pow(condition,
                           -static_cast<double>(count - 1 - i) / static_cast<double>(count - 1));
  return out;
}

std::vector<float> train_alone(const convex_problem& problem, const optimizer_config& optimizer,
                               std::uint64_t target_batch, std::uint64_t steps) {
  SHOAL_CHECK(target_batch >= 1, "batches are not empty");
  const auto n = problem.parameters();
  std::vector<float> x(n), sample(n), gradient(n);
  std::vector<std::byte> state(state_bytes(optimizer, n));
  std::vector<double> sum(n);
  problem.initial(x);
  for (std::uint64_t k = 0; k < steps; ++k) {
    std::fill(sum.begin(), sum.end(), 0.0);
    for (std::uint64_t i = 0; i < target_batch; ++i) {
      problem.sample(k * target_batch + i, sample);
      problem.accumulate(x, sample, sum);
    }
    for (std::size_t i = 0; i < n; ++i)
      gradient[i] = static_cast<float>(sum[i] / static_cast<double>(target_batch));
    step(optimizer, static_cast<std::int64_t>(k + 1), gradient, x, state);
  }
  return x;
}

} // namespace shoal::kernels
