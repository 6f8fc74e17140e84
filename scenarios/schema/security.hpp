// The rounds of a scenario: their aggregator, the length of their pieces, and their guard.
#pragma once

#include "scenarios/schema/reader.hpp"
#include "scenarios/schema/scenario.hpp"

#include <cstdint>
#include <vector>

namespace shoal::actors {
struct averaging_config;
} // namespace shoal::actors

namespace shoal::scenarios {

/// `security.batch`, or the share of one host in the target batch.
std::uint64_t clipped_batch_of(const scenario& what);

/// Sets the aggregator, the length of pieces and the guard of rounds.
void apply_aggregation(const scenario& what, actors::averaging_config& into);

/// Hosts whose conduct is an attack.
std::uint64_t attackers_in(const scenario& what);

void check_security(const scenario& what, const source_map& sources,
                    std::vector<problem>& problems);

} // namespace shoal::scenarios
