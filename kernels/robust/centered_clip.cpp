#include "kernels/robust/centered_clip.hpp"

#include "kernels/base/check.hpp"
#include "kernels/robust/coordinate_median.hpp"
#include "kernels/robust/vector_passes.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace shoal::kernels {

namespace {

/// The iterations in coefficients.
class clipping {
public:
  clipping(std::span<const weighted_values> inputs, std::span<const double> radii,
           const square_matrix& products)
      : inputs_(inputs), radii_(radii), products_(products), factors_(inputs.size()),
        with_center_(inputs.size()), pulls_(inputs.size()) {
    for (const auto& one : inputs) weight_ += one.weight;
  }

  /// Takes a step, and returns an upper bound of its length.
  double step() {
    double square = 0; // |v - v0|^2
    for (std::size_t i = 0; i < size(); ++i) {
      double sum = 0;
      for (std::size_t j = 0; j < size(); ++j) sum += factors_[j] * products_.at(i, j);
      with_center_[i] = sum;
    }
    for (std::size_t i = 0; i < size(); ++i) square += factors_[i] * with_center_[i];
    double all = 0;
    for (std::size_t i = 0; i < size(); ++i) {
      const double distance =
          std::sqrt(std::max(0.0, products_.at(i, i) - 2 * with_center_[i] + square));
      const double share = distance <= radii_[i] ? 1 : radii_[i] / distance;
      pulls_[i] = inputs_[i].weight / weight_ * share;
      all += pulls_[i];
    }
    double length = 0;
    for (std::size_t i = 0; i < size(); ++i) {
      const double change = pulls_[i] - all * factors_[i];
      factors_[i] += change;
      length += std::abs(change) * std::sqrt(products_.at(i, i));
    }
    return length;
  }
  std::span<const double> factors() const { return factors_; }

private:
  std::size_t size() const { return inputs_.size(); }

  std::span<const weighted_values> inputs_;
  std::span<const double> radii_;
  const square_matrix& products_;
  double weight_ = 0;
  std::vector<double> factors_; // v = v0 + sum_i factors_[i] (x_i - v0)
  std::vector<double> with_center_, pulls_;
};

} // namespace

template <class Out>
clip_outcome centered_clip(std::span<const weighted_values> inputs, std::span<const double> radii,
                           std::span<const double> start, const clip_limits& until,
                           std::span<Out> out) {
  SHOAL_CHECK(!inputs.empty() && radii.size() == inputs.size(), "a radius for each input");
  std::vector<double> center(start.begin(), start.end());
  if (center.empty()) {
    center.resize(out.size());
    coordinate_median<double>(inputs, middle::lower, center);
  }
  const auto products = centered_products(inputs, center);
  const auto smallest = *std::min_element(radii.begin(), radii.end());
  SHOAL_CHECK(smallest > 0, "radii are positive");
  clipping clip(inputs, radii, products);
  clip_outcome outcome;
  while (outcome.iterations < until.iterations && !outcome.converged) {
    outcome.last_step = clip.step();
    outcome.converged = outcome.last_step <= until.tolerance * smallest;
    ++outcome.iterations;
  }
  combine_around<Out>(center, inputs, clip.factors(), out);
  return outcome;
}

template clip_outcome centered_clip(std::span<const weighted_values>, std::span<const double>,
                                    std::span<const double>, const clip_limits&, std::span<float>);
template clip_outcome centered_clip(std::span<const weighted_values>, std::span<const double>,
                                    std::span<const double>, const clip_limits&, std::span<double>);

double clip_radius(double radius, std::size_t length, std::size_t total, double batch,
                   double samples) {
  SHOAL_CHECK(radius > 0 && length > 0 && length <= total && samples > 0, "a radius of a part");
  const double of_part =
      radius * std::sqrt(static_cast<double>(length) / static_cast<double>(total));
  return batch > 0 ? of_part * std::sqrt(batch / samples) : of_part;
}

} // namespace shoal::kernels
