// The charts of a program's outcome as an SVG file: values that fall from 1, logarithmic, by round.
#pragma once

#include "scenarios/programs/program_run.hpp"

#include <string>

namespace shoal::tools {

/// The panels below each other.
std::string outcome_svg(const scenarios::outcome_chart& chart);

} // namespace shoal::tools
