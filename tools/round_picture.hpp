// A round as a picture with a row for each pair of its members. A row has the transfers from one
// member to the other over time, and the waiting time of each.
#pragma once

#include "scenarios/record/explain.hpp"

#include <string>
#include <vector>

namespace shoal::tools {

inline constexpr std::size_t most_round_rows =
    400; ///< pairs; of more, those whose last transfer arrives last are shown

/// An SVG file, for a page or a browser, with the rounds below each other.
std::string round_picture(const std::vector<scenarios::round_explanation>& rounds);

} // namespace shoal::tools
