#include "kernels/learn/weight_matrix.hpp"

#include "kernels/base/check.hpp"
#include "kernels/base/wider.hpp"

#include <algorithm>
#include <array>

namespace shoal::learn {

namespace {

/// The products of one panel [inputs, 32] with one vector. Each lane adds in the order of the
/// inputs, so the width of the machine's vectors does not change the sums.
SHOAL_WIDER void panel_product(const float* __restrict weights, const float* __restrict in,
                               std::size_t inputs, float* __restrict sums) {
  constexpr std::size_t lanes = 32;
  float acc[lanes] = {};
  for (std::size_t j = 0; j < inputs; ++j) {
    const float x = in[j];
    for (std::size_t l = 0; l < lanes; ++l) acc[l] += weights[j * lanes + l] * x;
  }
  for (std::size_t l = 0; l < lanes; ++l) sums[l] = acc[l];
}

} // namespace

weight_matrix::weight_matrix(std::span<const float> weights, std::size_t outputs,
                             std::size_t inputs)
    : outputs_(outputs), inputs_(inputs), packed_((outputs + panel - 1) / panel * panel * inputs) {
  SHOAL_CHECK(weights.size() == outputs * inputs, "the matrix has all of its weights");
  for (std::size_t i = 0; i < outputs; ++i)
    for (std::size_t j = 0; j < inputs; ++j)
      packed_[(i / panel * inputs + j) * panel + i % panel] = weights[i * inputs + j];
}

void weight_matrix::multiply(const float* in, std::size_t rows, float* out) const {
  std::fill_n(out, rows * outputs_, 0.0F);
  multiply_add(in, rows, out);
}

void weight_matrix::multiply_add(const float* in, std::size_t rows, float* out) const {
  std::array<float, panel> sums;
  for (std::size_t first = 0; first < outputs_; first += panel) {
    const auto count = std::min(panel, outputs_ - first);
    for (std::size_t r = 0; r < rows; ++r) {
      panel_product(packed_.data() + first * inputs_, in + r * inputs_, inputs_, sums.data());
      float* to = out + r * outputs_ + first;
      for (std::size_t l = 0; l < count; ++l) to[l] += sums[l];
    }
  }
}

void weight_matrix::multiply_back(const float* gradient_out, std::size_t rows,
                                  float* gradient_in) const {
  for (std::size_t first = 0; first < outputs_; first += panel) {
    const auto count = std::min(panel, outputs_ - first);
    const float* weights = packed_.data() + first * inputs_;
    for (std::size_t r = 0; r < rows; ++r) {
      const float* from = gradient_out + r * outputs_ + first;
      float* to = gradient_in + r * inputs_;
      for (std::size_t j = 0; j < inputs_; ++j) {
        float sum = 0;
        for (std::size_t l = 0; l < count; ++l) sum += weights[j * panel + l] * from[l];
        to[j] += sum;
      }
    }
  }
}

} // namespace shoal::learn
