// The least time that a round could take on the lines of its members, by their rates alone.
#pragma once

#include "kernels/base/units.hpp"
#include "scenarios/schema/hosts.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace shoal::scenarios {

/// The time that `bytes` need among the members, with the best share of the vector for each
/// reducer. Delays, windows and other traffic are left out, and so are lines that hosts share.
/// `members`: names of hosts. Empty if a member is no host of these, or no plan exists.
/// Source: DeDLOC's linear program (kernels/averaging_plan.hpp).
std::optional<duration> bandwidth_bound(const std::vector<host_spec>& hosts,
                                        const std::vector<std::string>& members,
                                        std::uint64_t bytes);

} // namespace shoal::scenarios
