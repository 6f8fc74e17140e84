#include "kernels/perceptron.hpp"

#include "kernels/base/check.hpp"
#include "kernels/base/portable_math.hpp"
#include "kernels/base/rng.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace shoal::kernels {

namespace {

/// Eight sums, because one would wait for each addition.
double product(std::span<const float> a, std::span<const float> b) {
  double sums[8] = {};
  std::size_t j = 0;
  for (; j + 8 <= a.size(); j += 8)
    for (std::size_t k = 0; k < 8; ++k)
      sums[k] += static_cast<double>(a[j + k]) * static_cast<double>(b[j + k]);
  for (; j < a.size(); ++j) sums[0] += static_cast<double>(a[j]) * static_cast<double>(b[j]);
  return ((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7]));
}

void add_scaled(double factor, std::span<const float> x, std::span<double> sums) {
  for (std::size_t j = 0; j < x.size(); ++j) sums[j] += factor * static_cast<double>(x[j]);
}

/// The weights [out, in] and the biases [out] of one layer.
template <class T>
struct layer {
  std::span<T> weights, biases;
  std::span<T> row(std::size_t i) const {
    const auto in = weights.size() / biases.size();
    return weights.subspan(i * in, in);
  }
};

template <class T>
layer<T> layer_at(std::span<T> all, std::size_t from, std::size_t in, std::size_t out) {
  return {all.subspan(from, in * out), all.subspan(from + in * out, out)};
}

} // namespace

struct perceptron::activity {
  std::vector<float> hidden;
  std::vector<double> outputs; // probabilities after forward()
};

void perceptron::initial(std::uint64_t seed, std::span<float> parameters) const {
  SHOAL_CHECK(parameters.size() == this->parameters(), "parameters of this network");
  std::fill(parameters.begin(), parameters.end(), 0.0F);
  auto random = stream(seed, "perceptron");
  const auto draw = [&](std::span<float> weights, double deviation) {
    random.for_each_normal(weights.size(), [&](std::size_t j, double z) {
      weights[j] = static_cast<float>(deviation * z);
    });
  };
  const auto in = static_cast<double>(inputs_), between = static_cast<double>(hidden_);
  if (hidden_ == 0) return draw(parameters.first(classes_ * inputs_), std::sqrt(1 / in));
  draw(parameters.first(hidden_ * inputs_), std::sqrt(2 / in));
  draw(parameters.subspan(hidden_ * (inputs_ + 1), classes_ * hidden_), std::sqrt(1 / between));
}

double perceptron::forward(std::span<const float> parameters, std::span<const float> x,
                           std::size_t label, activity& out) const {
  SHOAL_CHECK(parameters.size() == this->parameters() && x.size() == inputs_ && label < classes_,
              "a sample of this network");
  std::span<const float> into_last = x;
  std::size_t last_at = 0;
  if (hidden_ > 0) {
    const auto first = layer_at(parameters, 0, inputs_, hidden_);
    out.hidden.resize(hidden_);
    for (std::size_t i = 0; i < hidden_; ++i)
      out.hidden[i] = static_cast<float>(
          std::max(0.0, product(first.row(i), x) + static_cast<double>(first.biases[i])));
    into_last = out.hidden;
    last_at = hidden_ * (inputs_ + 1);
  }
  const auto last = layer_at(parameters, last_at, into_last.size(), classes_);
  out.outputs.resize(classes_);
  for (std::size_t k = 0; k < classes_; ++k)
    out.outputs[k] = product(last.row(k), into_last) + static_cast<double>(last.biases[k]);
  const double of_label = out.outputs[label];
  const double largest = *std::max_element(out.outputs.begin(), out.outputs.end());
  double sum = 0;
  for (auto& z : out.outputs) sum += z = portable::exp(z - largest);
  for (auto& z : out.outputs) z /= sum;
  return portable::log(sum) + largest - of_label;
}

double perceptron::accumulate(std::span<const float> parameters, std::span<const float> x,
                              std::size_t label, std::span<double> gradient_sum) const {
  SHOAL_CHECK(gradient_sum.size() == this->parameters(), "a gradient of this network");
  thread_local activity at;
  const double loss = forward(parameters, x, label, at);
  at.outputs[label] -= 1; // the gradient of the loss at the outputs
  const bool deep = hidden_ > 0;
  const std::span<const float> into_last = deep ? std::span<const float>(at.hidden) : x;
  const auto last_at = deep ? hidden_ * (inputs_ + 1) : 0;
  const auto last = layer_at(gradient_sum, last_at, into_last.size(), classes_);
  for (std::size_t k = 0; k < classes_; ++k) {
    add_scaled(at.outputs[k], into_last, last.row(k));
    last.biases[k] += at.outputs[k];
  }
  if (!deep) return loss;
  const auto weights = layer_at(parameters, last_at, hidden_, classes_);
  const auto first = layer_at(gradient_sum, 0, inputs_, hidden_);
  for (std::size_t i = 0; i < hidden_; ++i) {
    if (at.hidden[i] <= 0) continue;
    double slope = 0;
    for (std::size_t k = 0; k < classes_; ++k)
      slope += at.outputs[k] * static_cast<double>(weights.row(k)[i]);
    add_scaled(slope, x, first.row(i));
    first.biases[i] += slope;
  }
  return loss;
}

perceptron::judgement perceptron::judge(std::span<const float> parameters, std::span<const float> x,
                                        std::size_t label) const {
  thread_local activity at;
  const double loss = forward(parameters, x, label, at);
  const auto best = std::max_element(at.outputs.begin(), at.outputs.end()) - at.outputs.begin();
  return {loss, static_cast<std::size_t>(best) == label};
}

} // namespace shoal::kernels
