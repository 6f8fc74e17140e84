// Problems with one minimum, for studies of training that need to know the right answer. A problem
// defines its samples, their loss and its gradient. The optimum and the samples are hidden. They
// come from named streams of the seed, so a sample is the same wherever it is drawn. A gradient
// takes a sample as it was streamed and draws nothing.
//   f(x) = E_s[loss(x, s)],  x and s have n = parameters() values each
#pragma once

#include "kernels/optimizer.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace shoal::kernels {

/// Thread safety: all functions may be called from several threads at once.
class convex_problem {
public:
  virtual ~convex_problem() = default;

  /// n: values of x, and of a sample.
  virtual std::size_t parameters() const = 0;
  /// Where training starts, into `x` [n].
  virtual void initial(std::span<float> x) const = 0;
  /// Sample `index`, which exists for every index, into `out` [n].
  virtual void sample(std::uint64_t index, std::span<float> out) const = 0;
  /// Adds the gradient of the sample's loss at `x` to `gradient_sum` [n]; returns the loss.
  virtual double accumulate(std::span<const float> x, std::span<const float> sample,
                            std::span<double> gradient_sum) const = 0;
  /// The loss of `x` on samples that training never sees.
  virtual double held_out_loss(std::span<const float> x) const = 0;
};

/// `count` numbers, log-spaced from 1 / condition to 1; a single one is 1. Requires: condition
/// >= 1.
std::vector<double> log_spaced(std::size_t count, double condition);

/// Training on one machine: step k trains on the samples [k B, (k + 1) B), B = target_batch, in
/// order. Returns the parameters after `steps` steps. Requires: validate(optimizer), target_batch
/// >= 1.
std::vector<float> train_alone(const convex_problem& problem, const optimizer_config& optimizer,
                               std::uint64_t target_batch, std::uint64_t steps);

} // namespace shoal::kernels
