#include "kernels/learn/weight_matrix.hpp"

#include "kernels/base/check.hpp"
#include "kernels/base/wider.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

namespace shoal::learn {

namespace {

constexpr std::size_t lanes = 32;
constexpr float outlier = 6;
constexpr float most_code = 127;

/// The nearest bfloat16, ties to even.
std::uint16_t to_bfloat16(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  return static_cast<std::uint16_t>((bits + 0x7FFFU + (bits >> 16 & 1U)) >> 16);
}
float from_bfloat16(std::uint16_t x) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(x) << 16);
}

// The products of one panel [inputs, 32] with one vector. Each lane adds in the order of the
// inputs, so the width of the machine's vectors does not change the sums.

SHOAL_WIDER void panel_product(const float* __restrict weights, const float* __restrict in,
                               std::size_t inputs, float* __restrict sums) {
  float acc[lanes] = {};
  for (std::size_t j = 0; j < inputs; ++j) {
    const float x = in[j];
    for (std::size_t l = 0; l < lanes; ++l) acc[l] += weights[j * lanes + l] * x;
  }
  for (std::size_t l = 0; l < lanes; ++l) sums[l] = acc[l];
}

SHOAL_WIDER void panel_product(const std::uint16_t* __restrict weights, const float* __restrict in,
                               std::size_t inputs, float* __restrict sums) {
  float acc[lanes] = {};
  for (std::size_t j = 0; j < inputs; ++j) {
    const float x = in[j];
    for (std::size_t l = 0; l < lanes; ++l) acc[l] += from_bfloat16(weights[j * lanes + l]) * x;
  }
  for (std::size_t l = 0; l < lanes; ++l) sums[l] = acc[l];
}

SHOAL_WIDER void panel_product(const std::int8_t* __restrict weights,
                               const std::int32_t* __restrict in, std::size_t inputs,
                               std::int32_t* __restrict sums) {
  std::int32_t acc[lanes] = {};
  for (std::size_t j = 0; j < inputs; ++j) {
    const std::int32_t x = in[j];
    for (std::size_t l = 0; l < lanes; ++l) acc[l] += weights[j * lanes + l] * x;
  }
  for (std::size_t l = 0; l < lanes; ++l) sums[l] = acc[l];
}

} // namespace

weight_matrix::weight_matrix(std::span<const float> weights, std::size_t outputs,
                             std::size_t inputs, weight_format format)
    : outputs_(outputs), inputs_(inputs), format_(format) {
  static_assert(panel == lanes);
  SHOAL_CHECK(weights.size() == outputs * inputs, "the matrix has all of its weights");
  const auto size = (outputs + panel - 1) / panel * panel * inputs;
  const auto each = [&](auto use) {
    for (std::size_t i = 0; i < outputs; ++i)
      for (std::size_t j = 0; j < inputs; ++j) use(i, j, weights[i * inputs + j]);
  };
  switch (format) {
  case weight_format::float32:
    floats_.resize(size);
    each([&](std::size_t i, std::size_t j, float w) { floats_[place(i, j)] = w; });
    break;
  case weight_format::bfloat16:
    halves_.resize(size);
    each([&](std::size_t i, std::size_t j, float w) { halves_[place(i, j)] = to_bfloat16(w); });
    break;
  case weight_format::int8:
    codes_.resize(size);
    scales_.resize(outputs);
    each([&](std::size_t i, std::size_t, float w) {
      scales_[i] = std::max(scales_[i], std::abs(w) / most_code);
    });
    each([&](std::size_t i, std::size_t j, float w) {
      codes_[place(i, j)] =
          scales_[i] == 0 ? std::int8_t{0} : static_cast<std::int8_t>(std::lround(w / scales_[i]));
    });
    break;
  }
}

float weight_matrix::at(std::size_t output, std::size_t input) const noexcept {
  const auto where = place(output, input);
  switch (format_) {
  case weight_format::float32:
    return floats_[where];
  case weight_format::bfloat16:
    return from_bfloat16(halves_[where]);
  case weight_format::int8:
    return scales_[output] * static_cast<float>(codes_[where]);
  }
  return 0;
}

void weight_matrix::multiply(const float* in, std::size_t rows, float* out) const {
  std::fill_n(out, rows * outputs_, 0.0F);
  multiply_add(in, rows, out);
}

void weight_matrix::multiply_add(const float* in, std::size_t rows, float* out) const {
  if (format_ == weight_format::int8) return multiply_add_int8(in, rows, out);
  std::array<float, panel> sums;
  for (std::size_t first = 0; first < outputs_; first += panel) {
    const auto count = std::min(panel, outputs_ - first);
    for (std::size_t r = 0; r < rows; ++r) {
      if (format_ == weight_format::float32)
        panel_product(floats_.data() + first * inputs_, in + r * inputs_, inputs_, sums.data());
      else
        panel_product(halves_.data() + first * inputs_, in + r * inputs_, inputs_, sums.data());
      float* to = out + r * outputs_ + first;
      for (std::size_t l = 0; l < count; ++l) to[l] += sums[l];
    }
  }
}

void weight_matrix::multiply_add_int8(const float* in, std::size_t rows, float* out) const {
  std::vector<std::int32_t> coded(inputs_);
  std::vector<std::size_t> outliers;
  std::array<std::int32_t, panel> sums;
  for (std::size_t r = 0; r < rows; ++r, in += inputs_, out += outputs_) {
    outliers.clear();
    float most = 0;
    for (std::size_t j = 0; j < inputs_; ++j) {
      const float size = std::abs(in[j]);
      if (size >= outlier)
        outliers.push_back(j);
      else
        most = std::max(most, size);
    }
    const float scale = most / most_code;
    for (std::size_t j = 0; j < inputs_; ++j)
      coded[j] = scale == 0 || std::abs(in[j]) >= outlier
                     ? 0
                     : static_cast<std::int32_t>(std::lround(in[j] / scale));
    for (std::size_t first = 0; first < outputs_; first += panel) {
      const auto count = std::min(panel, outputs_ - first);
      panel_product(codes_.data() + first * inputs_, coded.data(), inputs_, sums.data());
      for (std::size_t l = 0; l < count; ++l)
        out[first + l] += scales_[first + l] * scale * static_cast<float>(sums[l]);
    }
    for (const auto j : outliers)
      for (std::size_t i = 0; i < outputs_; ++i) out[i] += at(i, j) * in[j];
  }
}

void weight_matrix::multiply_back(const float* gradient_out, std::size_t rows,
                                  float* gradient_in) const {
  std::vector<float> weights(panel * inputs_); // decoded, [inputs, panel]
  for (std::size_t first = 0; first < outputs_; first += panel) {
    const auto count = std::min(panel, outputs_ - first);
    for (std::size_t j = 0; j < inputs_; ++j)
      for (std::size_t l = 0; l < count; ++l) weights[j * panel + l] = at(first + l, j);
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
