// A matrix of weights, packed for products with few vectors: a decoder that generates one token
// multiplies each matrix by one vector.
//   out[r, i] = sum of weight[i, j] * in[r, j] over j = 0, 1, ..., inputs - 1, in this order
// The order of the additions does not depend on the number of vectors. So a token gets the same
// bits in a long pass and in a step of its own.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace shoal::learn {

class weight_matrix {
public:
  weight_matrix() = default;
  /// Packs `weights` [outputs, inputs], row-major. Requires: weights.size() == outputs * inputs.
  weight_matrix(std::span<const float> weights, std::size_t outputs, std::size_t inputs);

  std::size_t outputs() const noexcept { return outputs_; }
  std::size_t inputs() const noexcept { return inputs_; }
  std::size_t bytes() const noexcept { return packed_.size() * sizeof(float); }

  /// out [rows, outputs] = in [rows, inputs] times the transposed matrix.
  void multiply(const float* in, std::size_t rows, float* out) const;
  /// Adds the product to `out`.
  void multiply_add(const float* in, std::size_t rows, float* out) const;
  /// Adds gradient_out [rows, outputs] times the matrix to gradient_in [rows, inputs]: the backward
  /// pass.
  void multiply_back(const float* gradient_out, std::size_t rows, float* gradient_in) const;

private:
  static constexpr std::size_t panel = 32; // outputs whose sums stay in registers

  std::size_t outputs_ = 0, inputs_ = 0;
  std::vector<float> packed_; // [panels, inputs, panel]; the last panel ends in zeros
};

} // namespace shoal::learn
