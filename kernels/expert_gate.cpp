#include "kernels/expert_gate.hpp"

#include "kernels/base/check.hpp"
#include "kernels/base/rng.hpp"
#include "kernels/dense.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace shoal::kernels {

namespace {

std::vector<double> softmax_of(std::span<const float> scores) {
  const double most = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  std::vector<double> out;
  for (const float each : scores) {
    out.push_back(std::exp(each - most));
    sum += out.back();
  }
  for (auto& each : out) each /= sum;
  return out;
}

} // namespace

expert_gate::expert_gate(std::size_t width, std::vector<std::uint32_t> grid)
    : width_(width), grid_(std::move(grid)) {
  SHOAL_CHECK(width_ > 0 && !grid_.empty(), "a gate has inputs and a grid");
  for (const auto side : grid_) {
    SHOAL_CHECK(side > 0, "a side of the grid is not empty");
    first_.push_back(keys_);
    keys_ += side;
  }
}

void expert_gate::initial(std::uint64_t seed, std::uint64_t number,
                          std::span<float> parameters) const {
  SHOAL_CHECK(parameters.size() == this->parameters(), "a gate has its own size");
  std::fill_n(parameters.begin(), width_, 1.0F);
  std::fill_n(parameters.begin() + static_cast<std::ptrdiff_t>(width_), width_, 0.0F);
  auto random = stream(seed, "gate.initial", number);
  const auto keys = parameters.subspan(2 * width_);
  random.for_each_normal(keys.size(),
                         [&](std::size_t i, double z) { keys[i] = static_cast<float>(z); });
}

std::vector<double> expert_gate::scales(std::span<const float> keys) const {
  std::vector<double> out(width_);
  for (std::size_t i = 0; i < width_; ++i) {
    double square = 0;
    for (const float k : keys.subspan(i * keys_, keys_)) square += static_cast<double>(k) * k;
    // libtorch's normalize() has the same bound.
    out[i] = 1 / std::max(std::sqrt(square), 1e-12);
  }
  return out;
}

std::vector<float> expert_gate::scores(std::span<const float> parameters,
                                       std::span<const float> x) const {
  std::vector<float> h(x.size());
  layer_norm(parameters.first(width_), parameters.subspan(width_, width_), x, h);
  const auto keys = parameters.subspan(2 * width_);
  const auto scale = scales(keys);
  for (std::size_t n = 0; n < h.size(); ++n) h[n] = static_cast<float>(h[n] * scale[n % width_]);
  std::vector<float> out(x.size() / width_ * keys_);
  linear(keys, {}, width_, h, out);
  return out;
}

void expert_gate::backward(std::span<const float> parameters, std::span<const float> x,
                           std::span<const float> gradient_scores, std::span<float> gradient_sum,
                           std::span<float> gradient_x_sum) const {
  const auto gain = parameters.first(width_);
  const auto keys = parameters.subspan(2 * width_);
  const auto scale = scales(keys);
  std::vector<float> h(x.size()), scaled(x.size()), back(x.size()), of_keys(keys.size());
  layer_norm(gain, parameters.subspan(width_, width_), x, h);
  for (std::size_t n = 0; n < h.size(); ++n)
    scaled[n] = static_cast<float>(h[n] * scale[n % width_]);
  linear_backward(keys, width_, scaled, gradient_scores, of_keys, {}, back);
  // A feature's keys have a fixed norm. So the part of the gradient along these keys has no effect.
  auto sum = gradient_sum.subspan(2 * width_);
  for (std::size_t i = 0; i < width_; ++i) {
    const auto row = keys.subspan(i * keys_, keys_);
    double along = 0;
    for (std::size_t k = 0; k < keys_; ++k)
      along += static_cast<double>(of_keys[i * keys_ + k]) * row[k];
    along *= scale[i] * scale[i];
    for (std::size_t k = 0; k < keys_; ++k)
      sum[i * keys_ + k] += static_cast<float>(of_keys[i * keys_ + k] - along * row[k]);
  }
  for (std::size_t n = 0; n < back.size(); ++n)
    back[n] = static_cast<float>(back[n] * scale[n % width_]);
  layer_norm_backward(gain, x, back, gradient_sum.first(width_),
                      gradient_sum.subspan(width_, width_), gradient_x_sum);
}

double expert_gate::logit(std::span<const float> scores_of_row, const expert_place& place) const {
  SHOAL_CHECK(place.size() == grid_.size(), "an expert has a coordinate in each dimension");
  double out = 0;
  for (std::size_t d = 0; d < place.size(); ++d) out += scores_of_row[key_of(d, place[d])];
  return out;
}

double expert_gate::probability(std::span<const float> scores_of_row,
                                const expert_place& place) const {
  double out = 1;
  for (std::size_t d = 0; d < grid_.size(); ++d)
    out *= softmax_of(scores_of_row.subspan(first_[d], grid_[d]))[place[d]];
  return out;
}

void expert_gate::probability_backward(std::span<const float> scores_of_row,
                                       const expert_place& place, double gradient,
                                       std::span<float> gradient_scores_sum) const {
  const double scale = gradient * probability(scores_of_row, place);
  for (std::size_t d = 0; d < grid_.size(); ++d) {
    const auto softmax = softmax_of(scores_of_row.subspan(first_[d], grid_[d]));
    for (std::size_t i = 0; i < softmax.size(); ++i)
      gradient_scores_sum[first_[d] + i] +=
          static_cast<float>(scale * ((i == place[d] ? 1 : 0) - softmax[i]));
  }
}

double expert_gate::balance(std::span<const float> scores,
                            std::span<const std::vector<expert_place>> chosen, double scale,
                            std::span<float> gradient_scores_sum) const {
  const auto rows = chosen.size();
  SHOAL_CHECK(scores.size() == rows * keys_, "choices for each row");
  std::vector<double> share(keys_), softmax(rows * keys_), mean(keys_);
  double choices = 0;
  for (const auto& row : chosen)
    for (const auto& place : row) {
      ++choices;
      for (std::size_t d = 0; d < grid_.size(); ++d) ++share[key_of(d, place[d])];
    }
  if (choices == 0) return 0;
  for (auto& f : share) f /= choices;
  for (std::size_t n = 0; n < rows; ++n)
    for (std::size_t d = 0; d < grid_.size(); ++d) {
      const auto first = n * keys_ + first_[d];
      const auto of = softmax_of(scores.subspan(first, grid_[d]));
      for (std::size_t i = 0; i < of.size(); ++i) {
        softmax[first + i] = of[i];
        mean[first_[d] + i] += of[i] / static_cast<double>(rows);
      }
    }
  double out = 0;
  const auto dimensions = static_cast<double>(grid_.size());
  for (std::size_t d = 0; d < grid_.size(); ++d) {
    const double factor = grid_[d] / dimensions;
    for (std::size_t i = 0; i < grid_[d]; ++i)
      out += factor * share[first_[d] + i] * mean[first_[d] + i];
    if (gradient_scores_sum.empty()) continue;
    for (std::size_t n = 0; n < rows; ++n) {
      const auto first = n * keys_ + first_[d];
      double inner = 0;
      for (std::size_t i = 0; i < grid_[d]; ++i) inner += softmax[first + i] * share[first_[d] + i];
      for (std::size_t i = 0; i < grid_[d]; ++i)
        gradient_scores_sum[first + i] +=
            static_cast<float>(scale * factor / static_cast<double>(rows) * softmax[first + i] *
                               (share[first_[d] + i] - inner));
    }
  }
  return out;
}

std::vector<double> softmax_of_answers(std::span<const double> logits,
                                       const std::vector<bool>& answered) {
  SHOAL_CHECK(logits.size() == answered.size(), "each expert answered or did not");
  std::vector<double> out(logits.size());
  double most = -std::numeric_limits<double>::infinity(), sum = 0;
  for (std::size_t i = 0; i < out.size(); ++i)
    if (answered[i]) most = std::max(most, logits[i]);
  for (std::size_t i = 0; i < out.size(); ++i)
    if (answered[i]) sum += out[i] = std::exp(logits[i] - most);
  for (auto& w : out)
    if (sum > 0) w /= sum;
  return out;
}

std::vector<double> softmax_backward(std::span<const double> weights,
                                     std::span<const double> gradient_weights) {
  SHOAL_CHECK(weights.size() == gradient_weights.size(), "a gradient for each weight");
  double inner = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) inner += weights[i] * gradient_weights[i];
  std::vector<double> out(weights.size());
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = weights[i] * (gradient_weights[i] - inner);
  return out;
}

} // namespace shoal::kernels
