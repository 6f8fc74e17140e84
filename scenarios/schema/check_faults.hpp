// The checks of `faults:`.
#pragma once

#include "scenarios/schema/reader.hpp"
#include "scenarios/schema/scenario.hpp"

#include <vector>

namespace shoal::scenarios {

/// Whether `pattern` selects a host of the group.
bool selects(const std::string& pattern, const peer_group& group);

void check_faults(const scenario& what, const source_map& sources, std::vector<problem>& problems);

} // namespace shoal::scenarios
