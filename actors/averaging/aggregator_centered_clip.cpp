#include "actors/averaging/aggregator_centered_clip.hpp"

#include "actors/averaging/robust_aggregator.hpp"
#include "kernels/robust/centered_clip.hpp"

#include <algorithm>

namespace shoal::actors {

namespace {

struct centered_clip_method {
  explicit centered_clip_method(const aggregation_setting& how)
      : radius(how.number("radius")), batch(how.number("batch")),
        round_values(static_cast<std::size_t>(how.round_values)), until{.iterations = how.count(
                                                                            "iterations")} {}
  template <class Out>
  void operator()(std::span<const kernels::weighted_values> inputs, std::span<Out> out) const {
    std::vector<double> radii;
    for (const auto& one : inputs)
      radii.push_back(kernels::clip_radius(radius, out.size(), std::max(round_values, out.size()),
                                           batch, one.weight));
    kernels::centered_clip<Out>(inputs, radii, {}, until, out);
  }
  double radius, batch;
  std::size_t round_values;
  kernels::clip_limits until;
};

} // namespace

aggregator_definition centered_clip_definition() {
  return robust_definition<centered_clip_method>(
      "centered_clip",
      "CenteredClip: a mean weighted by samples in which a contribution pulls as if it were at "
      "most `radius` away",
      aggregation_unit::chunk,
      {{"radius",
        "distance in the whole vector beyond which a contribution is clipped; a chunk has its "
        "share, by the root of its length",
        option_form::number, 1, 0},
       {"batch",
        "samples of a contribution that is clipped at `radius`; one of b samples is clipped at "
        "`radius` times the root of `batch` / b. 0: all are clipped at `radius`",
        option_form::count,
        0,
        {},
        {},
        1e9},
       {"iterations",
        "most steps to the fixed point, which ends them at 10^-9 of the radius",
        option_form::count,
        500,
        {},
        1,
        1e6}},
      [](std::uint64_t inputs, const aggregation_setting&) {
        return robustness{1, (inputs - 1) / 2};
      });
}

} // namespace shoal::actors
