#include "kernels/robust/krum.hpp"

#include "kernels/base/check.hpp"
#include "kernels/robust/pre_aggregation.hpp"
#include "kernels/robust/vector_passes.hpp"

#include <algorithm>
#include <numeric>

namespace shoal::kernels {

std::vector<std::size_t> lowest_krum_scores(std::span<const weighted_values> inputs,
                                            std::size_t faulty, std::size_t chosen) {
  SHOAL_CHECK(!inputs.empty() && chosen > 0, "Krum chooses among inputs");
  const auto count = inputs.size();
  const auto neighbours =
      std::min(count - 1, count > faulty + 2 ? count - faulty - 2 : std::size_t{1});
  const auto distances = squared_distances(inputs);
  std::vector<double> scores(count), row;
  for (std::size_t i = 0; i < count; ++i) {
    row.clear();
    for (std::size_t j = 0; j < count; ++j)
      if (j != i) row.push_back(distances.at(i, j));
    std::sort(row.begin(), row.end());
    scores[i] =
        std::accumulate(row.begin(), row.begin() + static_cast<std::ptrdiff_t>(neighbours), 0.0);
  }
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return scores[a] < scores[b]; });
  order.resize(std::min(chosen, count));
  std::sort(order.begin(), order.end());
  return order;
}

template <class Out>
void multi_krum(std::span<const weighted_values> inputs, std::size_t faulty, std::size_t chosen,
                std::span<Out> out) {
  mix<Out>(inputs, {.of = lowest_krum_scores(inputs, faulty, chosen)}, out);
}

template void multi_krum(std::span<const weighted_values>, std::size_t, std::size_t,
                         std::span<float>);
template void multi_krum(std::span<const weighted_values>, std::size_t, std::size_t,
                         std::span<double>);

} // namespace shoal::kernels
