// The curves of an averaging benchmark as an SVG file: distortion, logarithmic, by round.
#pragma once

#include <string>
#include <vector>

namespace shoal::tools {

struct plotted_curve {
  std::string name;
  std::vector<double> values;      ///< by round, from round 0; relative to the first
  bool dashed = false;             ///< theory
  std::size_t colour = 0;          ///< equal numbers have equal colours
};

/// Values below `least` are drawn at the bottom.
std::string averaging_svg(const std::string& title, const std::vector<plotted_curve>& curves, double least);

}  // namespace shoal::tools
