// Presets of churn that was measured in real populations, for `preset:` of a group's churn.
#pragma once

#include "scenarios/schema/churn_options.hpp"

#include <string_view>

namespace shoal::scenarios {

struct churn_preset {
  std::string_view name;
  lifetime_options session, gap;
};

/// The valid values of `preset:`.
inline constexpr const char* churn_preset_names =
    "volunteers, overnet, skype, desktop_grid, office, spot_t4, spot_v100";

/// Returns the preset called `name`, or null.
const churn_preset* find_churn_preset(std::string_view name);

} // namespace shoal::scenarios
