#include "kernels/reduce_weighted_mean.hpp"

#include "kernels/base/check.hpp"

#include <Eigen/Core>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <string>

namespace shoal::kernels {

namespace {

using float_map = Eigen::Map<const Eigen::ArrayXf>;
using double_map = Eigen::Map<Eigen::ArrayXd>;

Eigen::Index index(std::size_t n) {
  return static_cast<Eigen::Index>(n);
}

std::string who(std::uint32_t sender) {
  return "sender " + std::to_string(sender);
}

/// 8 KiB of sums, beside which a block of an input fits.
constexpr std::size_t block_size = 1024;

} // namespace

bool all_finite(std::span<const float> values) {
  // An exponent of ones. On integers: sums of floats would not be vectorized.
  std::uint32_t found = 0;
  for (const float x : values)
    found |= static_cast<std::uint32_t>((std::bit_cast<std::uint32_t>(x) & 0x7f800000U) == 0x7f800000U);
  return found == 0;
}

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

std::size_t weighted_mean(std::span<const weighted_values> inputs, std::span<float> out) {
  SHOAL_CHECK(!inputs.empty(), "the mean of nothing");
  double total = 0;
  for (const weighted_values& input : inputs) {
    SHOAL_CHECK(input.values.size() == out.size(), "inputs of one size");
    total += input.weight;
  }
  alignas(64) std::array<double, block_size> sums;
  std::size_t bad = inputs.size();
  for (std::size_t at = 0; at < out.size(); at += block_size) {
    const std::size_t n = std::min(block_size, out.size() - at);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const float* const x = inputs[i].values.data() + at;
      const double weight = inputs[i].weight;
      if (!all_finite({x, n}))
        bad = std::min(bad, i);
      // 0 + w x, as the reducer begins, so that a sum of -0.0 has its sign.
      if (i == 0)
        for (std::size_t j = 0; j < n; ++j)
          sums[j] = 0.0 + weight * static_cast<double>(x[j]);
      else
        for (std::size_t j = 0; j < n; ++j)
          sums[j] += weight * static_cast<double>(x[j]);
    }
    for (std::size_t j = 0; j < n; ++j)
      out[at + j] = static_cast<float>(sums[j] / total);
  }
  return bad;
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
