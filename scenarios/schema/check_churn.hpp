// Checks of `churn:` and of its traces.
#pragma once

#include "scenarios/schema/reader.hpp"

#include <string>
#include <vector>

namespace shoal::scenarios {

/// Fills the churn options that a group leaves to its preset. A session or gap with a
/// `distribution` replaces the preset's. Without a `distribution` it changes single numbers of the
/// preset's.
void fill_churn(peer_group& group, const source_map& sources);

/// Appends errors and warnings to `problems`. Relative paths start at `folder`.
void check_churn(const scenario& what, const source_map& sources, const std::string& folder,
                 std::vector<problem>& problems);

} // namespace shoal::scenarios
