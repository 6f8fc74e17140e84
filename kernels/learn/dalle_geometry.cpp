#include "kernels/learn/dalle_geometry.hpp"

#include <cmath>
#include <cstddef>
#include <numbers>

namespace shoal::learn {

namespace {

constexpr std::int64_t reach = 4;
constexpr double code_position = 8192, caption_place = -10;

double linspace(double from, double to, std::int64_t steps, std::int64_t i) {
  return steps == 1 ? from
                    : from + (to - from) * static_cast<double>(i) / static_cast<double>(steps - 1);
}

bool sees(dalle_attention kind, std::int64_t down, std::int64_t right) {
  if (down < 0 || (down == 0 && right < 0)) return false;
  switch (kind) {
  case dalle_attention::row:
    return down == 0;
  case dalle_attention::column:
    return right == 0;
  case dalle_attention::convolution:
    return down <= reach && right >= 0 && right <= reach;
  }
  return false;
}

} // namespace

dalle_attention attention_of(const dalle_config& config, std::int64_t layer) noexcept {
  if (layer == config.layers - 1) return dalle_attention::convolution;
  return layer % 4 == 1 ? dalle_attention::column : dalle_attention::row;
}

std::vector<std::uint8_t> dalle_mask(const dalle_config& config, dalle_attention kind) {
  const auto n = config.positions(), first = config.text_length + 1;
  std::vector<std::uint8_t> out(static_cast<std::size_t>(n * n));
  for (std::int64_t p = 0; p < n; ++p)
    for (std::int64_t q = 0; q <= p; ++q) {
      const auto a = p - first, b = q - first;
      const bool visible = q < first || sees(kind, a / config.side - b / config.side,
                                             a % config.side - b % config.side);
      out[static_cast<std::size_t>(p * n + q)] = visible ? 1 : 0;
    }
  return out;
}

std::vector<float> dalle_angles(const dalle_config& config) {
  const auto n = config.positions(), pairs = config.head_width() / 2,
             axis = config.head_width() / 3, each = axis / 2, first = config.text_length + 1;
  std::vector<float> out(static_cast<std::size_t>(n * pairs));
  for (std::int64_t p = 0; p < n; ++p) {
    const bool code = p >= first;
    const auto at = p - first;
    const double text = code ? code_position : static_cast<double>(p);
    const double row = code ? linspace(-1, 1, config.side, at / config.side) : caption_place;
    const double column = code ? linspace(-1, 1, config.side, at % config.side) : caption_place;
    float* angles = out.data() + p * pairs;
    for (std::int64_t i = 0; i < each; ++i) {
      const double pixel = std::numbers::pi * linspace(1, 5, each, i);
      angles[i] = static_cast<float>(
          text * std::pow(10000.0, -2.0 * static_cast<double>(i) / static_cast<double>(axis)));
      angles[each + i] = static_cast<float>(pixel * row);
      angles[2 * each + i] = static_cast<float>(pixel * column);
    }
  }
  return out;
}

} // namespace shoal::learn
