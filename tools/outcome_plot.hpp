// The charts of a program's outcome as an SVG file: values that fall from 1, logarithmic, by round.
// And its page.
#pragma once

#include "scenarios/programs/program_run.hpp"

#include <string>

namespace shoal::tools {

/// The panels below each other.
std::string outcome_svg(const scenarios::outcome_chart& chart);

/// The outcome of a program as a page of its own, with its charts and the text that it printed.
std::string outcome_page(const std::string& title, const std::string& printed,
                         const scenarios::program_outcome& outcome, const std::string& command);

} // namespace shoal::tools
