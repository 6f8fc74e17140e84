// Whether a run was what its scenario expects.
#pragma once

#include "scenarios/schema/scenario.hpp"

#include <map>
#include <string>
#include <vector>

namespace shoal::scenarios {

struct summary;

/// A sentence for each expectation that `what` misses, in the order of the metrics' names.
std::vector<std::string> missed_expectations(const std::map<std::string, expectation>& expected,
                                             const summary& what);

} // namespace shoal::scenarios
