// The gate of a mixture of experts that stand on a grid. Each row gets a score for each coordinate
// of each dimension, and an expert's logit is the sum over its coordinates. So a grid of M^D
// experts needs D M scores (product keys).
//   h = layer_norm(x);  score[k] = sum_i h[i] K[i, k] / |K[i, :]|
//   logit(i1, ..., iD) = score_1[i1] + ... + score_D[iD]
// The norm |K[i, :]| runs over all keys of one input feature, not over the features of one key.
// Source: Ryabinin and Gusev, arXiv:2002.04013, section 3.2; product keys: Lample et al.,
// arXiv:1907.05242. Probability and balance: Fedus et al., arXiv:2101.03961, equations 1, 2 and 4;
// the balance is here for each dimension of the grid.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace shoal::kernels {

/// The coordinates of an expert, one for each dimension of the grid.
using expert_place = std::vector<std::uint32_t>;

/// Thread safety: immutable.
class expert_gate {
public:
  /// Requires: width > 0, a grid whose sides are not 0.
  expert_gate(std::size_t width, std::vector<std::uint32_t> grid);

  std::size_t width() const noexcept { return width_; }
  const std::vector<std::uint32_t>& grid() const noexcept { return grid_; }
  /// The sum of the grid's sides.
  std::size_t keys() const noexcept { return keys_; }
  /// Gain [width], bias [width], K [width, keys].
  std::size_t parameters() const noexcept { return 2 * width_ + width_ * keys_; }
  /// Gains 1, biases 0, keys standard normal.
  void initial(std::uint64_t seed, std::uint64_t number, std::span<float> parameters) const;

  /// Scores [rows, keys] of x [rows, width]; a row has the keys of the first dimension first.
  std::vector<float> scores(std::span<const float> parameters, std::span<const float> x) const;
  /// Adds the gradients with respect to the parameters and to x.
  void backward(std::span<const float> parameters, std::span<const float> x,
                std::span<const float> gradient_scores, std::span<float> gradient_sum,
                std::span<float> gradient_x_sum) const;

  /// The place in a row of scores of the coordinate `at` of dimension `dimension`.
  std::size_t key_of(std::size_t dimension, std::uint32_t at) const {
    return first_[dimension] + at;
  }
  /// The logit of an expert. Requires: place on the grid.
  double logit(std::span<const float> scores_of_row, const expert_place& place) const;

  /// An expert's probability by the softmax of the logits of all experts of the grid. That is the
  /// product over the dimensions of the softmax of their scores. Requires: place on the grid.
  double probability(std::span<const float> scores_of_row, const expert_place& place) const;
  /// Adds `gradient` times the gradient of probability() with respect to the scores of the row.
  void probability_backward(std::span<const float> scores_of_row, const expert_place& place,
                            double gradient, std::span<float> gradient_scores_sum) const;

  /// The balance loss of rows with these choices: the mean over dimensions d of M_d sum_i f_i p_i.
  /// f_i: the share of the choices with coordinate i; p_i: the mean over rows of the softmax of the
  /// dimension's scores. 1 where all coordinates are equally likely. Adds `scale` times the
  /// gradient, for constant f, to `gradient_scores_sum` unless that is empty.
  /// Requires: chosen.size() rows.
  double balance(std::span<const float> scores, std::span<const std::vector<expert_place>> chosen,
                 double scale, std::span<float> gradient_scores_sum) const;

private:
  /// 1 / |K[i, :]| for each input feature.
  std::vector<double> scales(std::span<const float> keys) const;

  std::size_t width_;
  std::vector<std::uint32_t> grid_;
  std::vector<std::size_t> first_;
  std::size_t keys_ = 0;
};

/// The softmax of `logits` over the experts that answered; the others have weight 0. If none
/// answered, all weights are 0. Requires: equal sizes.
std::vector<double> softmax_of_answers(std::span<const double> logits,
                                       const std::vector<bool>& answered);
/// The gradient with respect to the logits; 0 for experts that did not answer.
std::vector<double> softmax_backward(std::span<const double> weights,
                                     std::span<const double> gradient_weights);

} // namespace shoal::kernels
