// The curves of an averaging benchmark as an SVG file: distortion, logarithmic, by round.
#pragma once

#include <string>
#include <vector>

namespace shoal::tools {

struct plotted_curve {
  std::string name;
  std::vector<double> values; ///< by round, from round 0; relative to the first
  bool dashed = false;        ///< theory
  std::size_t colour = 0;     ///< equal numbers have equal colours
};

struct plot_panel {
  std::string title;
  std::vector<plotted_curve> curves;
};

/// The panels below each other. Values below `least` are drawn at the bottom.
std::string averaging_svg(const std::vector<plot_panel>& panels, double least);

} // namespace shoal::tools
