// What has to be true of `churn:`, and of the traces that it names.
#pragma once

#include "scenarios/schema/reader.hpp"

#include <string>
#include <vector>

namespace shoal::scenarios {

/// Whatever the group's preset says and the group does not. A session or a gap with a
/// `distribution` of its own is taken as it is; without one it changes single numbers of the
/// preset's.
void fill_churn(peer_group& group, const source_map& sources);

/// Appends errors and warnings to `problems`. `folder`: where relative paths begin.
void check_churn(const scenario& what, const source_map& sources, const std::string& folder,
                 std::vector<problem>& problems);

} // namespace shoal::scenarios
