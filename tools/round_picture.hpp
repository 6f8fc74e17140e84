// A round as a picture: a row for each pair of its members, with the transfers from one to the
// other over time, and how long each of them waited.
#pragma once

#include "scenarios/record/explain.hpp"

#include <string>
#include <vector>

namespace shoal::tools {

inline constexpr std::size_t most_round_rows =
    400; ///< pairs; of more, those whose last transfer arrives last are shown

/// An SVG file, for a page or a browser: the rounds one below the other.
std::string round_picture(const std::vector<scenarios::round_explanation>& rounds);

} // namespace shoal::tools
