// Presets of typical access lines, for `line:` of a group of peers.
#pragma once

#include "scenarios/schema/scenario.hpp"

#include <string_view>

namespace shoal::scenarios {

struct line_preset {
  std::string_view name;
  data_rate up, down;
  path_options access;
  duration buffer{}; ///< the downlink's queue, in time
};

/// The valid values of `line:`.
inline constexpr const char* line_names =
    "dsl, cable, fibre, lte, wifi, satellite_geo, satellite_leo, lan, data_centre";

/// Returns the preset called `name`, or null.
const line_preset* find_line(std::string_view name);

} // namespace shoal::scenarios
