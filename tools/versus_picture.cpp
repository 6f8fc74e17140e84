#include "tools/versus_picture.hpp"

#include "tools/svg_chart.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

namespace shoal::tools {

namespace {

using loss_of = std::optional<double> scenarios::recorded_epoch::*;

std::vector<chart_point> points_of(const scenarios::run_record& run, loss_of loss) {
  std::vector<chart_point> out;
  for (const auto& [epoch, of] : run.by_epoch)
    if (of.reached_seconds && of.*loss) out.push_back({*of.reached_seconds, *(of.*loss), {}, {}});
  std::stable_sort(out.begin(), out.end(),
                   [](const chart_point& a, const chart_point& b) { return a.x < b.x; });
  return out;
}

bool all_have(const scenarios::run_versus& what, loss_of loss) {
  for (const auto& variant : what.variants)
    for (const auto& run : variant.runs)
      if (points_of(run, loss).size() < 2) return false;
  return true;
}

} // namespace

std::string versus_picture(const scenarios::run_versus& what) {
  const bool held_out = all_have(what, &scenarios::recorded_epoch::loss_held_out);
  const loss_of loss =
      held_out ? &scenarios::recorded_epoch::loss_held_out : &scenarios::recorded_epoch::loss_train;
  chart out;
  out.title = held_out ? "loss on held-out text" : "training loss";
  out.legend_width = 220;
  double last = 1, low = std::numeric_limits<double>::infinity(), high = -low;
  for (std::size_t i = 0; i < what.variants.size(); ++i) {
    const auto& variant = what.variants[i];
    for (std::size_t k = 0; k < variant.runs.size(); ++k) {
      chart_curve curve;
      // The legend names each variant once.
      if (k == 0) curve.name = variant.name;
      curve.points = points_of(variant.runs[k], loss);
      curve.dots = false;
      curve.colour = i;
      for (const chart_point& point : curve.points) {
        last = std::max(last, point.x);
        low = std::min(low, point.y);
        high = std::max(high, point.y);
      }
      out.curves.push_back(std::move(curve));
    }
  }
  if (!(low < high)) low = 0, high = std::max(1.0, high);
  out.x = {"seconds of the run", 0, last, false, {}};
  for (const double at : round_ticks(0, last, 8))
    out.x.ticks.push_back({at, fmt::format("{}", at)});
  out.y = {"nats", low, high, false, {}};
  for (const double at : round_ticks(low, high, 6))
    out.y.ticks.push_back({at, fmt::format("{:.4g}", at)});
  return fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" "
                     "font-family=\"sans-serif\" font-size=\"13\">\n{}</svg>\n",
                     out.width, out.height, chart_svg(out));
}

} // namespace shoal::tools
