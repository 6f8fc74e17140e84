// Checks of robust aggregators and of attacks. They find attackers that the aggregator does not
// bear, groups too small for its options, and attacks that the workload or the world lacks.
#pragma once

#include "scenarios/schema/scenario.hpp"

#include <vector>

namespace shoal::scenarios {

struct problem;
struct source_map;

void check_robustness(const scenario& what, const source_map& sources,
                      std::vector<problem>& problems);

} // namespace shoal::scenarios
