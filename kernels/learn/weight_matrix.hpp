// A matrix of weights, packed for products with few vectors: a decoder that generates one token
// multiplies each matrix by one vector.
//   out[r, i] = sum of weight[i, j] * in[r, j] over j = 0, 1, ..., inputs - 1, in this order
// The order of the additions does not depend on the number of vectors. So a token gets the same
// bits in a long pass and in a step of its own.
//
// int8: row i of the weights is a scale m_i = max_j |weight[i, j]| and codes c = round(127 weight /
// m_i). A vector is coded likewise, without its outliers, the values of at least 6. These are
// multiplied by the decoded weights:
//   out[i] = m_i max|x| / 127^2 * sum of c[i, j] x[j] (int32)  +  sum over outliers of weight * in
// Error of a weight: m_i / 254. Source: Dettmers et al., "LLM.int8()", arXiv:2208.07339, section 3.
// There an outlier of one vector counts for the whole batch. Here each vector has its own, so that
// the batch changes no bit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace shoal::learn {

/// The form of weights in memory: 4, 2 or 1 bytes each. bfloat16 rounds to 8 bits of precision.
enum class weight_format : std::uint8_t { float32, bfloat16, int8 };

class weight_matrix {
public:
  weight_matrix() = default;
  /// Packs `weights` [outputs, inputs], row-major. Requires: weights.size() == outputs * inputs,
  /// finite weights.
  weight_matrix(std::span<const float> weights, std::size_t outputs, std::size_t inputs,
                weight_format format = weight_format::float32);

  std::size_t outputs() const noexcept { return outputs_; }
  std::size_t inputs() const noexcept { return inputs_; }
  std::size_t bytes() const noexcept {
    return floats_.size() * sizeof(float) + halves_.size() * sizeof(std::uint16_t) + codes_.size() +
           scales_.size() * sizeof(float);
  }
  /// The weight as it is kept.
  float at(std::size_t output, std::size_t input) const noexcept;

  /// out [rows, outputs] = in [rows, inputs] times the transposed matrix.
  void multiply(const float* in, std::size_t rows, float* out) const;
  /// Adds the product to `out`.
  void multiply_add(const float* in, std::size_t rows, float* out) const;
  /// Adds gradient_out [rows, outputs] times the matrix to gradient_in [rows, inputs]: the backward
  /// pass. The coding of vectors counts as the identity.
  void multiply_back(const float* gradient_out, std::size_t rows, float* gradient_in) const;

private:
  static constexpr std::size_t panel = 32; // outputs whose sums stay in registers

  std::size_t place(std::size_t output, std::size_t input) const noexcept {
    return (output / panel * inputs_ + input) * panel + output % panel;
  }
  void multiply_add_int8(const float* in, std::size_t rows, float* out) const;

  std::size_t outputs_ = 0, inputs_ = 0;
  weight_format format_ = weight_format::float32;
  // One of these holds the weights: [panels, inputs, panel]; the last panel ends in zeros.
  std::vector<float> floats_;
  std::vector<std::uint16_t> halves_;
  std::vector<std::int8_t> codes_;
  std::vector<float> scales_; // int8: m_i / 127, by output
};

} // namespace shoal::learn
