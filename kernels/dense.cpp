#include "kernels/dense.hpp"

#include "kernels/base/check.hpp"
#include "kernels/base/dot.hpp"
#include "kernels/base/rng.hpp"

#include <algorithm>
#include <cmath>

namespace shoal::kernels {

namespace {

constexpr double norm_epsilon = 1e-5;

struct row_moments {
  double mean = 0, scale = 0;
};

row_moments moments_of(std::span<const float> x) {
  double mean = 0, variance = 0;
  for (const float v : x) mean += v;
  mean /= static_cast<double>(x.size());
  for (const float v : x) variance += (v - mean) * (v - mean);
  variance /= static_cast<double>(x.size());
  return {mean, 1 / std::sqrt(variance + norm_epsilon)};
}

} // namespace

void linear(std::span<const float> w, std::span<const float> b, std::size_t inputs,
            std::span<const float> x, std::span<float> y) {
  SHOAL_CHECK(inputs > 0 && w.size() % inputs == 0 && x.size() % inputs == 0,
              "a layer needs whole rows");
  const auto outputs = w.size() / inputs, rows = x.size() / inputs;
  SHOAL_CHECK(y.size() == rows * outputs && (b.empty() || b.size() == outputs),
              "a layer needs room for its outputs");
  for (std::size_t n = 0; n < rows; ++n) {
    auto* out = y.data() + n * outputs;
    if (b.empty())
      std::fill_n(out, outputs, 0.0F);
    else
      std::copy(b.begin(), b.end(), out);
  }
  for (std::size_t i = 0; i < inputs; ++i) {
    const auto* row = w.data() + i * outputs;
    for (std::size_t n = 0; n < rows; ++n) {
      const float v = x[n * inputs + i];
      if (v == 0) continue;
      auto* out = y.data() + n * outputs;
      for (std::size_t o = 0; o < outputs; ++o) out[o] += v * row[o];
    }
  }
}

void linear_backward(std::span<const float> w, std::size_t inputs, std::span<const float> x,
                     std::span<const float> gradient_y, std::span<float> gradient_w_sum,
                     std::span<float> gradient_b_sum, std::span<float> gradient_x_sum) {
  const auto outputs = w.size() / inputs, rows = x.size() / inputs;
  SHOAL_CHECK(gradient_y.size() == rows * outputs, "a gradient for each output");
  for (std::size_t n = 0; n < rows && !gradient_b_sum.empty(); ++n)
    for (std::size_t o = 0; o < outputs; ++o) gradient_b_sum[o] += gradient_y[n * outputs + o];
  for (std::size_t i = 0; i < inputs; ++i) {
    const auto* row = w.data() + i * outputs;
    for (std::size_t n = 0; n < rows; ++n) {
      const auto* g = gradient_y.data() + n * outputs;
      const float v = x[n * inputs + i];
      if (!gradient_w_sum.empty() && v != 0) {
        auto* sum = gradient_w_sum.data() + i * outputs;
        for (std::size_t o = 0; o < outputs; ++o) sum[o] += v * g[o];
      }
      if (!gradient_x_sum.empty()) gradient_x_sum[n * inputs + i] += dot(row, g, outputs);
    }
  }
}

void layer_norm(std::span<const float> gain, std::span<const float> bias, std::span<const float> x,
                std::span<float> y) {
  const auto width = gain.size();
  SHOAL_CHECK(width > 0 && bias.size() == width && x.size() % width == 0 && y.size() == x.size(),
              "a norm needs whole rows");
  for (std::size_t at = 0; at < x.size(); at += width) {
    const auto [mean, scale] = moments_of(x.subspan(at, width));
    for (std::size_t i = 0; i < width; ++i)
      y[at + i] = gain[i] * static_cast<float>((x[at + i] - mean) * scale) + bias[i];
  }
}

void layer_norm_backward(std::span<const float> gain, std::span<const float> x,
                         std::span<const float> gradient_y, std::span<float> gradient_gain_sum,
                         std::span<float> gradient_bias_sum, std::span<float> gradient_x_sum) {
  const auto width = gain.size();
  for (std::size_t at = 0; at < x.size(); at += width) {
    const auto [mean, scale] = moments_of(x.subspan(at, width));
    double of_mean = 0, of_scale = 0;
    for (std::size_t i = 0; i < width; ++i) {
      const double normal = (x[at + i] - mean) * scale, g = gradient_y[at + i];
      if (!gradient_gain_sum.empty()) gradient_gain_sum[i] += static_cast<float>(g * normal);
      if (!gradient_bias_sum.empty()) gradient_bias_sum[i] += static_cast<float>(g);
      of_mean += g * gain[i];
      of_scale += g * gain[i] * normal;
    }
    of_mean /= static_cast<double>(width);
    of_scale /= static_cast<double>(width);
    for (std::size_t i = 0; i < width && !gradient_x_sum.empty(); ++i) {
      const double normal = (x[at + i] - mean) * scale;
      gradient_x_sum[at + i] +=
          static_cast<float>(scale * (gradient_y[at + i] * static_cast<double>(gain[i]) - of_mean -
                                      normal * of_scale));
    }
  }
}

class_loss cross_entropy(std::span<const float> logits, std::size_t label, float scale,
                         std::span<float> gradient_sum) {
  SHOAL_CHECK(label < logits.size(), "a label is one of the classes");
  const double most = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float z : logits) sum += std::exp(z - most);
  for (std::size_t k = 0; k < gradient_sum.size(); ++k)
    gradient_sum[k] +=
        scale * static_cast<float>(std::exp(logits[k] - most) / sum - (k == label ? 1 : 0));
  const bool right = std::max_element(logits.begin(), logits.end()) - logits.begin() ==
                     static_cast<std::ptrdiff_t>(label);
  return {std::log(sum) + most - logits[label], right};
}

void initial_linear(std::uint64_t seed, std::uint64_t number, std::size_t inputs,
                    std::span<float> w, std::span<float> b) {
  auto random = stream(seed, "dense.initial", number);
  const double bound = 1 / std::sqrt(static_cast<double>(inputs));
  for (auto& v : w) v = static_cast<float>(random.uniform(-bound, bound));
  for (auto& v : b) v = static_cast<float>(random.uniform(-bound, bound));
}

} // namespace shoal::kernels
