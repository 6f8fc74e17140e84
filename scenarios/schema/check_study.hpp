// What has to be true of a study of averaging as a whole.
#pragma once

#include "scenarios/schema/reader.hpp"

#include <vector>

namespace shoal::scenarios {

/// Appends errors and warnings to `problems`. Requires: what.study.
void check_study(const scenario& what, const source_map& sources, std::vector<problem>& problems);

} // namespace shoal::scenarios
