// A chart as SVG: curves over one pair of axes, with bands or bars for their confidence. Elements
// with a class (back, grid, axis) can get other colours from a page's style. Their attributes serve
// a file of its own.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace shoal::tools {

struct chart_axis {
  struct tick {
    double at = 0;
    std::string text;
  };
  std::string label;
  double from = 0, to = 1; ///< from < to; a logarithmic axis begins above 0
  bool logarithmic = false;
  std::vector<tick> ticks; ///< on an x axis, texts that would overlap are left out
};

struct chart_point {
  double x = 0, y = 0;
  std::optional<double> low, high; ///< ends of the confidence interval
};

/// The form of a curve between its points.
enum class chart_line { solid, dashed, none };

struct chart_curve {
  std::string name; ///< empty: the legend leaves the curve out
  std::vector<chart_point> points;
  chart_line line = chart_line::solid;
  bool dots = true;
  std::size_t colour = 0; ///< equal numbers have equal colours
};

struct chart {
  std::string title;
  chart_axis x, y; ///< values beyond an axis are drawn at its end
  std::vector<chart_curve> curves;
  double width = 900, height = 470, font_size = 13;
  double legend_width = 0; ///< width at the right; 0: no legend
};

/// Colours that viewers without colour vision can tell apart, too (Okabe and Ito). They repeat
/// after six.
const char* chart_colour(std::size_t number);

/// About `about` round numbers between both ends.
std::vector<double> round_ticks(double from, double to, std::size_t about);

/// The content of an <svg> element of the chart's size.
std::string chart_svg(const chart& what);

} // namespace shoal::tools
