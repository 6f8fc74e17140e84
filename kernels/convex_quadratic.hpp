// A noisy quadratic bowl.
//   loss(x, c) = 1/2 (x - c)^T A (x - c),
//   A diagonal with eigenvalues log-spaced from 1 / condition to 1
//   sample: its centre c = x* + z, z standard normal; x* is hidden, standard normal
//   f(x) - f(x*) = 1/2 (x - x*)^T A (x - x*), which is the held-out loss
// SGD of rate r contracts the expected error along eigenvalue l by 1 - r l a step.
#pragma once

#include "kernels/convex_problem.hpp"

namespace shoal::kernels {

class convex_quadratic final : public convex_problem {
public:
  /// Requires: parameters >= 1, condition >= 1.
  convex_quadratic(std::size_t parameters, double condition, std::uint64_t seed);

  std::size_t parameters() const override { return optimum_.size(); }
  void initial(std::span<float> x) const override;
  void sample(std::uint64_t index, std::span<float> out) const override;
  double accumulate(std::span<const float> x, std::span<const float> sample,
                    std::span<double> gradient_sum) const override;
  double held_out_loss(std::span<const float> x) const override;

  std::span<const double> optimum() const noexcept { return optimum_; }
  std::span<const double> eigenvalues() const noexcept { return eigenvalues_; }

private:
  std::uint64_t seed_;
  std::vector<double> eigenvalues_, optimum_;
};

} // namespace shoal::kernels
