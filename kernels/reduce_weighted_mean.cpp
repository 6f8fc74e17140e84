#include "kernels/reduce_weighted_mean.hpp"

#include "kernels/base/check.hpp"

#include <Eigen/Core>

#include <cmath>
#include <string>

namespace shoal::kernels {

namespace {

using float_map = Eigen::Map<const Eigen::ArrayXf>;
using double_map = Eigen::Map<Eigen::ArrayXd>;

Eigen::Index index(std::size_t n) {
  return static_cast<Eigen::Index>(n);
}

/// x - x is 0 for every finite x and NaN for the others, and the sum keeps a NaN: no branch inside.
bool all_finite(std::span<const float> values) {
  const float_map x(values.data(), index(values.size()));
  return (x - x).sum() == 0.0F;
}

std::string who(std::uint32_t sender) {
  return "sender " + std::to_string(sender);
}

} // namespace

weighted_mean_reducer::weighted_mean_reducer(std::size_t size) : sums_(size, 0.0) {}

result<void> weighted_mean_reducer::add(std::uint32_t sender, double weight,
                                        std::span<const float> values) {
  if (values.size() != sums_.size())
    return failure{who(sender) + " contributed " + std::to_string(values.size()) +
                   " values to a part of " + std::to_string(sums_.size())};
  // Written so that NaN is refused.
  if (!(weight >= smallest_weight && weight <= largest_weight))
    return failure{who(sender) + " has the weight " + std::to_string(weight) +
                   ", which is not a positive finite number of samples"};
  if (known_.contains(sender))
    return failure{who(sender) + " has contributed already"};
  if (!all_finite(values))
    return failure{who(sender) + " contributed a value that is not finite"};

  known_.insert(sender);
  contributions_.push_back({sender, weight});
  double_map sums(sums_.data(), index(sums_.size()));
  sums += weight * float_map(values.data(), index(values.size())).cast<double>();
  return {};
}

result<std::vector<float>> weighted_mean_reducer::finish() {
  if (contributions_.empty())
    return failure{"the part has no contributions"};
  std::vector<float> out(sums_.size());
  Eigen::Map<Eigen::ArrayXf>(out.data(), index(out.size())) =
      (double_map(sums_.data(), index(sums_.size())) / total_weight()).cast<float>();
  return out;
}

std::vector<float> weighted_mean_reference(std::span<const weighted_values> inputs) {
  SHOAL_CHECK(!inputs.empty(), "the mean of nothing");
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
