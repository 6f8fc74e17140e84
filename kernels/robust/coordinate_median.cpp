#include "kernels/robust/coordinate_median.hpp"

#include "kernels/base/check.hpp"
#include "kernels/robust/column_sort.hpp"

#include <algorithm>

namespace shoal::kernels {

template <class Out>
void coordinate_median(std::span<const weighted_values> inputs, middle which, std::span<Out> out) {
  column_sort columns(inputs.size());
  for (const auto& one : inputs)
    SHOAL_CHECK(one.values.size() == out.size(), "inputs have one size");
  const auto low = (inputs.size() - 1) / 2;
  const auto high = which == middle::lower ? low : inputs.size() / 2;
  for (std::size_t at = 0; at < out.size(); at += column_sort::block_size) {
    const auto n = std::min(column_sort::block_size, out.size() - at);
    columns.sort(inputs, at, n);
    const auto *const a = columns.of_rank(low), *const b = columns.of_rank(high);
    for (std::size_t j = 0; j < n; ++j)
      out[at + j] = static_cast<Out>((static_cast<double>(a[j]) + static_cast<double>(b[j])) / 2);
  }
}

template void coordinate_median(std::span<const weighted_values>, middle, std::span<float>);
template void coordinate_median(std::span<const weighted_values>, middle, std::span<double>);

} // namespace shoal::kernels
