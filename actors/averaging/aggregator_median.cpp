#include "actors/averaging/aggregator_median.hpp"

#include "actors/averaging/robust_aggregator.hpp"
#include "kernels/robust/coordinate_median.hpp"

namespace shoal::actors {

namespace {

struct median_method {
  explicit median_method(const aggregation_setting&) {}
  template <class Out>
  void operator()(std::span<const kernels::weighted_values> inputs, std::span<Out> out) const {
    kernels::coordinate_median<Out>(inputs, kernels::middle::mean, out);
  }
};

} // namespace

aggregator_definition median_definition() {
  return robust_definition<median_method>(
      "median", "the median of each coordinate; every member counts once", aggregation_unit::chunk,
      {}, [](std::uint64_t inputs, const aggregation_setting&) {
        return robustness{1, (inputs - 1) / 2};
      });
}

} // namespace shoal::actors
