#include "kernels/robust/pre_aggregation.hpp"

#include "kernels/base/check.hpp"
#include "kernels/base/rng.hpp"
#include "kernels/robust/vector_passes.hpp"

#include <algorithm>
#include <numeric>

namespace shoal::kernels {

std::vector<mixture> buckets(std::span<const weighted_values> inputs,
                             std::span<const std::size_t> order, std::size_t bucket_size) {
  SHOAL_CHECK(order.size() == inputs.size() && bucket_size > 0, "an order of all inputs");
  std::vector<mixture> out;
  for (std::size_t at = 0; at < order.size(); at += bucket_size) {
    const auto size = std::min(bucket_size, order.size() - at);
    auto& bucket = out.emplace_back();
    bucket.of.assign(order.begin() + static_cast<std::ptrdiff_t>(at),
                     order.begin() + static_cast<std::ptrdiff_t>(at + size));
    std::sort(bucket.of.begin(), bucket.of.end());
    for (const auto i : bucket.of) bucket.weight += inputs[i].weight;
  }
  return out;
}

std::vector<std::size_t> shuffled_order(std::span<const std::uint64_t> names, std::uint64_t seed) {
  // Each name draws its own place, so that the places of others do not depend on it.
  std::vector<std::uint64_t> places;
  places.reserve(names.size());
  for (const auto name : names) places.push_back(stream(seed, "bucket", name).next());
  std::vector<std::size_t> out(names.size());
  std::iota(out.begin(), out.end(), std::size_t{0});
  std::stable_sort(out.begin(), out.end(),
                   [&](std::size_t a, std::size_t b) { return places[a] < places[b]; });
  return out;
}

std::vector<mixture> nearest_mixtures(std::span<const weighted_values> inputs, std::size_t faulty) {
  const auto distances = squared_distances(inputs);
  const auto kept = inputs.size() > faulty ? inputs.size() - faulty : std::size_t{1};
  std::vector<mixture> out;
  std::vector<std::size_t> order(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return distances.at(i, a) < distances.at(i, b);
    });
    mixture one{{order.begin(), order.begin() + static_cast<std::ptrdiff_t>(kept)},
                inputs[i].weight};
    std::sort(one.of.begin(), one.of.end());
    out.push_back(std::move(one));
  }
  return out;
}

template <class Out>
void mix(std::span<const weighted_values> inputs, const mixture& what, std::span<Out> out) {
  std::vector<weighted_values> of;
  std::vector<double> factors;
  double weight = 0;
  for (const auto i : what.of) {
    of.push_back(inputs[i]);
    weight += inputs[i].weight;
  }
  for (const auto& one : of) factors.push_back(one.weight / weight);
  combine<Out>(of, factors, out);
}

template void mix(std::span<const weighted_values>, const mixture&, std::span<float>);
template void mix(std::span<const weighted_values>, const mixture&, std::span<double>);

} // namespace shoal::kernels
