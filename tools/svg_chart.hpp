// A chart as SVG: curves over one pair of axes, with bands or bars for their confidence. What has a
// class (back, grid, axis) can be given other colours by a page's style; the attributes are for a
// file that stands alone.
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
  double from = 0, to = 1; ///< from < to; a logarithmic one begins above 0
  bool logarithmic = false;
  std::vector<tick>
      ticks; ///< of an x axis: those whose texts would run into each other are left out
};

struct chart_point {
  double x = 0, y = 0;
  std::optional<double> low, high; ///< of the confidence interval
};

/// How a curve's points hang together.
enum class chart_line { solid, dashed, none };

struct chart_curve {
  std::string name;
  std::vector<chart_point> points;
  chart_line line = chart_line::solid;
  bool dots = true;
  std::size_t colour = 0; ///< equal numbers have equal colours
};

struct chart {
  std::string title;
  chart_axis x, y; ///< what lies beyond them is drawn at their ends
  std::vector<chart_curve> curves;
  double width = 900, height = 470, font_size = 13;
  double legend_width = 0; ///< at the right; 0: none
};

/// Colours that can be told apart without colour vision, too (Okabe and Ito); they repeat after
/// six.
const char* chart_colour(std::size_t number);

/// Round numbers that lie between both ends, about so many.
std::vector<double> round_ticks(double from, double to, std::size_t about);

/// The content of an <svg> element of the chart's size.
std::string chart_svg(const chart& what);

} // namespace shoal::tools
