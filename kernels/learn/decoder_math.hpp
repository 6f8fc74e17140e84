// The arithmetic of decoder.hpp on spans whose sizes the caller has checked.
#pragma once

#include "kernels/learn/decoder.hpp"
#include "kernels/learn/weight_matrix.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace shoal::learn {

/// The cosines and sines [context, head_width / 2] of the rotary angles position * base^(-2i /
/// head_width). Empty without rotary positions.
struct rotary_table {
  explicit rotary_table(const decoder_config& config);
  std::vector<float> cosine, sine;
};

/// The sizes of a layer as unsigned numbers.
struct layer_sizes {
  explicit layer_sizes(const decoder_config& config);
  std::size_t dim, hidden, heads, kv_heads, head, kv; ///< head: width of one; kv: of all kv_heads
  norm_kind norm;
  mlp_kind mlp;
  rotary_pairs rotary;
  bool rotates, biases;
  double epsilon;
  std::vector<float> slopes; ///< slopes of the heads with ALiBi, or empty

  bool gated() const noexcept { return mlp == mlp_kind::swiglu; }
  /// Floats in the parameters of a layer.
  std::size_t parameters() const noexcept {
    return 2 * dim + 2 * dim * dim + 2 * kv * dim + (gated() ? 3 : 2) * hidden * dim +
           (biases ? 7 * dim + hidden : 0);
  }
};

/// The gain of a norm, and its bias or nothing.
struct norm_weights {
  std::vector<float> gain, bias;
};

/// A product with a matrix, to which a bias is added if there is one.
struct linear_weights {
  weight_matrix matrix;
  std::vector<float> bias;
  std::size_t bytes() const noexcept { return matrix.bytes() + bias.size() * sizeof(float); }
  /// As those of weight_matrix.
  void multiply(const float* in, std::size_t rows, float* out) const;
  void multiply_add(const float* in, std::size_t rows, float* out) const;
  void multiply_back(const float* gradient_out, std::size_t rows, float* gradient_in) const {
    matrix.multiply_back(gradient_out, rows, gradient_in);
  }
};

/// One layer's weights, packed. `gate` is empty without a gate.
struct layer_weights {
  /// `parameters`: those of the layer in the order of the layout.
  layer_weights(const layer_sizes& sizes, std::span<const float> parameters, weight_format format);
  norm_weights attention_norm, mlp_norm;
  linear_weights q, k, v, out, gate, up, down;
  std::size_t bytes() const noexcept;
};

/// A token in a step: a sequence of a cache, and the token's position in it.
struct token_place {
  kv_cache* cache = nullptr;
  std::size_t sample = 0, position = 0;
};

/// out [rows, dim] = the norm of each row of x, times the gain, plus the bias.
void norm_rows(const layer_sizes& sizes, const norm_weights& weights, const float* x,
               std::size_t rows, float* out);
/// Adds the gradient of norm_rows with respect to x to `gradient_x`. Adds those of gain and bias to
/// `gradient_gain` and `gradient_bias` unless these are null.
void norm_rows_back(const layer_sizes& sizes, const norm_weights& weights, const float* x,
                    const float* gradient_out, std::size_t rows, float* gradient_x,
                    float* gradient_gain, float* gradient_bias);

/// Rotates the heads of `x` [heads, head] to `position`; `back` rotates the other way, which is the
/// gradient. Does nothing without rotary positions.
void rotate(const layer_sizes& sizes, const rotary_table& table, std::size_t position,
            std::size_t heads, bool back, float* x);

/// Replaces x [tokens, dim] by the output of layer `layer` of the caches. The keys and values of
/// the tokens enter the caches first. Requires: room for them (kv_cache::append).
void layer_forward(const layer_sizes& sizes, const rotary_table& table,
                   const layer_weights& weights, std::size_t layer,
                   std::span<const token_place> tokens, float* x);

/// The backward pass of a layer over whole sequences. x [samples * time, dim]: the layer's input.
/// Replaces `gradient` with respect to its output by the one with respect to x. Adds the gradient
/// of the parameters, in the order of the layout, unless `gradient_parameters` is null.
void layer_backward(const layer_sizes& sizes, const rotary_table& table,
                    const layer_weights& weights, pass_shape shape, const float* x, float* gradient,
                    float* gradient_parameters);

/// gradient [outputs, inputs] += the sum over rows of gradient_out [rows, outputs] times in [rows,
/// inputs].
void add_outer(const float* gradient_out, std::size_t outputs, const float* in, std::size_t inputs,
               std::size_t rows, float* gradient);

/// exp(x), from additions and multiplications alone, so that all machines get the same bits.
/// Error: below 2e-7 of the value. Zero below -87; Requires: x <= 88.
float exponential(float x) noexcept;

} // namespace shoal::learn
