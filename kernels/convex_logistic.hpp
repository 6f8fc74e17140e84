// Logistic regression on data of a known law, with the square of the weights as a penalty.
//   loss(x, s) = log(1 + exp(m)) - y m + l2/2 |w|^2,  m = w . a + b,  x = (w, b), s = (a, y)
//   sample: features a_j normal with variances log-spaced from 1 / condition to 1; then the label
//   y, 0 or 1, which is 1 with probability 1 / (1 + exp(-m)) for hidden w, b
// The label is noise that no model can foresee. Hidden w . a has deviation 3; b is standard normal.
// The held-out loss is the mean over samples that are never streamed, without the penalty. At the
// start, x = 0, it is log 2.
#pragma once

#include "kernels/base/rng.hpp"
#include "kernels/convex_problem.hpp"

namespace shoal::kernels {

class convex_logistic final : public convex_problem {
public:
  /// Requires: parameters >= 2 (weights and the intercept), condition >= 1, l2 >= 0.
  convex_logistic(std::size_t parameters, double condition, double l2, std::uint64_t seed);

  std::size_t parameters() const override { return hidden_.size(); }
  void initial(std::span<float> x) const override;
  /// The features, then the label.
  void sample(std::uint64_t index, std::span<float> out) const override;
  double accumulate(std::span<const float> x, std::span<const float> sample,
                    std::span<double> gradient_sum) const override;
  double held_out_loss(std::span<const float> x) const override;

  /// The weights and the intercept that draw the labels.
  std::span<const double> hidden() const noexcept { return hidden_; }
  std::size_t held_out_samples() const noexcept { return held_out_.size() / parameters(); }

private:
  void draw(rng& random, std::span<float> out) const;

  std::uint64_t seed_;
  double l2_;
  std::vector<double> deviations_, hidden_;
  std::vector<float> held_out_; // [held_out_samples(), parameters()]
};

} // namespace shoal::kernels
