#include "actors/averaging/aggregator_krum.hpp"

#include "actors/averaging/robust_aggregator.hpp"
#include "kernels/robust/krum.hpp"

#include <algorithm>

namespace shoal::actors {

namespace {

struct krum_method {
  explicit krum_method(const aggregation_setting& how) : faulty(how.count("faulty")) {}
  template <class Out>
  void operator()(std::span<const kernels::weighted_values> inputs, std::span<Out> out) const {
    kernels::multi_krum<Out>(inputs, faulty, 1, out);
  }
  std::uint64_t faulty;
};

struct multi_krum_method {
  explicit multi_krum_method(const aggregation_setting& how)
      : faulty(how.count("faulty")), chosen(how.count("chosen")) {}
  template <class Out>
  void operator()(std::span<const kernels::weighted_values> inputs, std::span<Out> out) const {
    const auto all = inputs.size();
    const auto standard = all > faulty ? all - faulty : std::uint64_t{1};
    kernels::multi_krum<Out>(inputs, faulty, chosen > 0 ? chosen : standard, out);
  }
  std::uint64_t faulty, chosen;
};

aggregator_option faulty_option() {
  return {"faulty",
          "contributions that may be faulty; a group needs more than twice as many and 2 members",
          option_form::count,
          1,
          {},
          {},
          2e6};
}

robustness bears(std::uint64_t, const aggregation_setting& how) {
  const auto faulty = how.count("faulty");
  return {2 * faulty + 3, faulty};
}

} // namespace

aggregator_definition krum_definition() {
  return robust_definition<krum_method>(
      "krum", "the contribution to a part that is closest to its neighbours",
      aggregation_unit::part, {faulty_option()}, bears);
}

aggregator_definition multi_krum_definition() {
  return robust_definition<multi_krum_method>(
      "multi_krum",
      "the mean of the contributions to a part that are closest to their neighbours, weighted by "
      "samples",
      aggregation_unit::part,
      {faulty_option(),
       {"chosen",
        "contributions in the mean; 0: all but `faulty`",
        option_form::count,
        0,
        {},
        {},
        4e6}},
      bears);
}

} // namespace shoal::actors
