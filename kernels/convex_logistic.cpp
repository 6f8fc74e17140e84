#include "kernels/convex_logistic.hpp"

#include "kernels/base/check.hpp"
#include "kernels/base/portable_math.hpp"

#include <Eigen/Core>

#include <algorithm>
#include <cmath>

namespace shoal::kernels {

namespace {

constexpr double margin_deviation = 3;
constexpr std::size_t held_out_values =
    std::size_t{1} << 22; // floats of the held-out samples, unless samples are very long
constexpr std::size_t most_held_out = 4096, least_held_out = 16;

double logistic(double m) {
  return 1 / (1 + portable::exp(-m));
}

/// log(1 + exp(m)) without overflow.
double softplus(double m) {
  return std::max(m, 0.0) + portable::log(1 + portable::exp(-std::abs(m)));
}

/// w . a + b. A sample has its label at the place of b.
template <class T>
double margin(std::span<const T> x, std::span<const float> sample) {
  const auto features = static_cast<Eigen::Index>(x.size() - 1);
  Eigen::Map<const Eigen::Array<T, Eigen::Dynamic, 1>> weights(x.data(), features);
  Eigen::Map<const Eigen::ArrayXf> values(sample.data(), features);
  return (weights.template cast<double>() * values.template cast<double>()).sum() +
         static_cast<double>(x.back());
}

} // namespace

convex_logistic::convex_logistic(std::size_t parameters, double condition, double l2,
                                 std::uint64_t seed)
    : seed_(seed), l2_(l2), deviations_(log_spaced(parameters - 1, condition)),
      hidden_(parameters) {
  SHOAL_CHECK(parameters >= 2, "there is a weight and an intercept");
  for (auto& d : deviations_) d = std::sqrt(d);
  auto random = stream(seed_, "logistic.weights");
  random.normals(hidden_);
  double variance = 0;
  for (std::size_t j = 0; j < deviations_.size(); ++j)
    variance += std::pow(deviations_[j] * hidden_[j], 2);
  for (std::size_t j = 0; j < deviations_.size(); ++j)
    hidden_[j] *= margin_deviation / std::sqrt(variance);
  held_out_.resize(parameters *
                   std::clamp(held_out_values / parameters, least_held_out, most_held_out));
  auto fresh = stream(seed_, "logistic.held_out");
  for (std::size_t at = 0; at < held_out_.size(); at += parameters)
    draw(fresh, std::span(held_out_).subspan(at, parameters));
}

void convex_logistic::draw(rng& random, std::span<float> out) const {
  random.for_each_normal(deviations_.size(), [&](std::size_t j, double z) {
    out[j] = static_cast<float>(deviations_[j] * z);
  });
  const double probability = logistic(margin(std::span<const double>(hidden_), out));
  out.back() = random.uniform() < probability ? 1.0f : 0.0f;
}

void convex_logistic::initial(std::span<float> x) const {
  std::fill(x.begin(), x.end(), 0.0f);
}

void convex_logistic::sample(std::uint64_t index, std::span<float> out) const {
  auto random = stream(seed_, "logistic.sample", index);
  draw(random, out);
}

double convex_logistic::accumulate(std::span<const float> x, std::span<const float> sample,
                                   std::span<double> gradient_sum) const {
  const auto features = static_cast<Eigen::Index>(x.size() - 1);
  Eigen::Map<const Eigen::ArrayXf> weights(x.data(), features), values(sample.data(), features);
  Eigen::Map<Eigen::ArrayXd> sum(gradient_sum.data(), features);
  const double m = margin(x, sample), label = sample.back(), slope = logistic(m) - label;
  sum += slope * values.cast<double>() + l2_ * weights.cast<double>();
  gradient_sum.back() += slope;
  return softplus(m) - label * m + 0.5 * l2_ * weights.cast<double>().square().sum();
}

double convex_logistic::held_out_loss(std::span<const float> x) const {
  double loss = 0;
  for (std::size_t at = 0; at < held_out_.size(); at += parameters()) {
    const auto sample = std::span<const float>(held_out_).subspan(at, parameters());
    const double m = margin(x, sample);
    loss += softplus(m) - static_cast<double>(sample.back()) * m;
  }
  return loss / static_cast<double>(held_out_samples());
}

} // namespace shoal::kernels
