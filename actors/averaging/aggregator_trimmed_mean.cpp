#include "actors/averaging/aggregator_trimmed_mean.hpp"

#include "actors/averaging/robust_aggregator.hpp"
#include "kernels/robust/trimmed_mean.hpp"

namespace shoal::actors {

namespace {

struct trimmed_mean_method {
  explicit trimmed_mean_method(const aggregation_setting& how) : trimmed(how.count("faulty")) {}
  template <class Out>
  void operator()(std::span<const kernels::weighted_values> inputs, std::span<Out> out) const {
    kernels::trimmed_mean<Out>(inputs, trimmed, out);
  }
  std::uint64_t trimmed;
};

} // namespace

aggregator_definition trimmed_mean_definition() {
  return robust_definition<trimmed_mean_method>(
      "trimmed_mean",
      "the mean of each coordinate without its `faulty` smallest and largest values; every member "
      "counts once",
      aggregation_unit::chunk,
      {{"faulty",
        "contributions that may be faulty: so many values are left out at each end",
        option_form::count,
        1,
        {},
        {},
        4e6}},
      [](std::uint64_t, const aggregation_setting& how) {
        const auto faulty = how.count("faulty");
        return robustness{2 * faulty + 1, faulty};
      });
}

} // namespace shoal::actors
