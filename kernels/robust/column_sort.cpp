#include "kernels/robust/column_sort.hpp"

#include "kernels/base/check.hpp"
#include "kernels/base/wider.hpp"

#include <algorithm>
#include <bit>

namespace shoal::kernels {

namespace {

SHOAL_WIDER void order(float* low, float* high, std::size_t n) {
  for (std::size_t j = 0; j < n; ++j) {
    const float a = low[j], b = high[j];
    low[j] = b < a ? b : a;
    high[j] = b < a ? a : b;
  }
}

} // namespace

column_sort::column_sort(std::size_t inputs) : rows_(inputs * block_size) {
  SHOAL_CHECK(inputs > 0, "a sort needs inputs");
  const std::size_t top = inputs < 2 ? 0 : std::bit_ceil(inputs) / 2;
  for (std::size_t p = top; p > 0; p /= 2) {
    std::size_t q = top, r = 0, d = p;
    while (true) {
      for (std::size_t i = 0; i + d < inputs; ++i)
        if ((i & p) == r)
          comparators_.emplace_back(static_cast<std::uint32_t>(i),
                                    static_cast<std::uint32_t>(i + d));
      if (q == p) break;
      d = q - p;
      q /= 2;
      r = p;
    }
  }
}

void column_sort::sort(std::span<const weighted_values> inputs, std::size_t at, std::size_t n) {
  SHOAL_CHECK(inputs.size() * block_size == rows_.size() && n <= block_size, "a sort of this size");
  for (std::size_t i = 0; i < inputs.size(); ++i)
    std::copy_n(inputs[i].values.data() + at, n, rows_.data() + i * block_size);
  for (const auto& [low, high] : comparators_)
    order(rows_.data() + low * block_size, rows_.data() + high * block_size, n);
}

} // namespace shoal::kernels
