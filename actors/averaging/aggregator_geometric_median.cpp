#include "actors/averaging/aggregator_geometric_median.hpp"

#include "actors/averaging/robust_aggregator.hpp"
#include "kernels/robust/geometric_median.hpp"

namespace shoal::actors {

namespace {

struct geometric_median_method {
  explicit geometric_median_method(const aggregation_setting& how)
      : until{.smoothing = how.number("smoothing"), .iterations = how.count("iterations")} {}
  template <class Out>
  void operator()(std::span<const kernels::weighted_values> inputs, std::span<Out> out) const {
    kernels::geometric_median<Out>(inputs, {}, until, out);
  }
  kernels::weiszfeld_limits until;
};

} // namespace

aggregator_definition geometric_median_definition() {
  return robust_definition<geometric_median_method>(
      "geometric_median",
      "the point with the least sum of distances to the contributions to a part, weighted by "
      "samples",
      aggregation_unit::part,
      {{"smoothing", "distances below this one count as this one", option_form::number, 1e-6, 0},
       {"iterations",
        "most steps of the Weiszfeld iteration",
        option_form::count,
        200,
        {},
        1,
        1e6}},
      [](std::uint64_t inputs, const aggregation_setting&) {
        return robustness{1, (inputs - 1) / 2};
      });
}

} // namespace shoal::actors
