#include "kernels/robust/trimmed_mean.hpp"

#include "kernels/base/check.hpp"
#include "kernels/base/wider.hpp"
#include "kernels/robust/column_sort.hpp"

#include <algorithm>

namespace shoal::kernels {

namespace {

SHOAL_WIDER void add(double* sums, const float* x, std::size_t n) {
  for (std::size_t j = 0; j < n; ++j) sums[j] += static_cast<double>(x[j]);
}

} // namespace

template <class Out>
void trimmed_mean(std::span<const weighted_values> inputs, std::size_t trimmed,
                  std::span<Out> out) {
  column_sort columns(inputs.size());
  for (const auto& one : inputs)
    SHOAL_CHECK(one.values.size() == out.size(), "inputs have one size");
  const auto first = std::min(trimmed, (inputs.size() - 1) / 2), end = inputs.size() - first;
  alignas(64) double sums[column_sort::block_size];
  for (std::size_t at = 0; at < out.size(); at += column_sort::block_size) {
    const auto n = std::min(column_sort::block_size, out.size() - at);
    columns.sort(inputs, at, n);
    std::fill_n(sums, n, 0.0);
    for (auto rank = first; rank < end; ++rank) add(sums, columns.of_rank(rank), n);
    for (std::size_t j = 0; j < n; ++j)
      out[at + j] = static_cast<Out>(sums[j] / static_cast<double>(end - first));
  }
}

template void trimmed_mean(std::span<const weighted_values>, std::size_t, std::span<float>);
template void trimmed_mean(std::span<const weighted_values>, std::size_t, std::span<double>);

} // namespace shoal::kernels
