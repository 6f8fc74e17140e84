// Dense layers over rows of floats, forward and backward, in plain loops. The bits do not depend on
// the machine, as far as exp() and sqrt() agree. Matrices are [inputs, outputs], row-major, so that
// the inner loops run over outputs. Functions with a `_sum` argument add to it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace shoal::kernels {

/// y[n, o] = b[o] + sum_i x[n, i] w[i, o]. Requires: w.size() == inputs * outputs, an empty b or
/// outputs of it, x.size() a multiple of inputs, no aliasing.
void linear(std::span<const float> w, std::span<const float> b, std::size_t inputs,
            std::span<const float> x, std::span<float> y);

/// The gradients of linear() with respect to w and b, and to x. Empty spans are left out.
/// Requires: as linear(), sizes as those of w, b and x.
void linear_backward(std::span<const float> w, std::size_t inputs, std::span<const float> x,
                     std::span<const float> gradient_y, std::span<float> gradient_w_sum,
                     std::span<float> gradient_b_sum, std::span<float> gradient_x_sum);

/// y = gain (x - mean) / sqrt(variance + 1e-5) + bias, for each row of gain.size() values.
/// Source: Ba et al., arXiv:1607.06450.
void layer_norm(std::span<const float> gain, std::span<const float> bias, std::span<const float> x,
                std::span<float> y);
void layer_norm_backward(std::span<const float> gain, std::span<const float> x,
                         std::span<const float> gradient_y, std::span<float> gradient_gain_sum,
                         std::span<float> gradient_bias_sum, std::span<float> gradient_x_sum);

/// The loss of one row of logits, log sum_k exp(z_k) - z_label, and whether the largest logit is
/// that of the label. `gradient_sum` [classes] may be empty; the gradient is times `scale`.
/// Requires: label < logits.size().
struct class_loss {
  double loss = 0;
  bool right = false;
};
class_loss cross_entropy(std::span<const float> logits, std::size_t label, float scale,
                         std::span<float> gradient_sum);

/// Fills weights and biases uniformly within 1 / sqrt(inputs) of 0, as libtorch's Linear does.
void initial_linear(std::uint64_t seed, std::uint64_t number, std::size_t inputs,
                    std::span<float> w, std::span<float> b);

} // namespace shoal::kernels
