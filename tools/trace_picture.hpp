// A churn trace as a picture: the number of present peers over time, and a line for each peer's
// sessions.
#pragma once

#include "netem/trace.hpp"

#include <cstddef>
#include <string>

namespace shoal::tools {

inline constexpr std::size_t most_picture_rows =
    48; ///< peers; of more, evenly spaced ones are shown

/// For a terminal of `columns` columns. A block is as dark as the part of its time in which the
/// peer is present.
std::string text_picture(const netem::trace& what, std::size_t columns);

/// An SVG file, for a page or a browser.
std::string svg_picture(const netem::trace& what, const std::string& title);

} // namespace shoal::tools
