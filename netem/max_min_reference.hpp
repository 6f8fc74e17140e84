// Max-min fair rates from scratch, by plain progressive filling. This is the specification of
// max_min.
// Steps: raise one level for all flows that are not frozen. Freeze the flows on the first link that
// fills up, or the flow that reaches its cap first. Repeat until all flows are frozen.
// Complexity: O(links * rounds + sum of path lengths). For tests, and for verification before
// timing.
#pragma once

#include "netem/max_min.hpp"

#include <span>
#include <vector>

namespace shoal::netem {

struct max_min_demand {
  std::vector<link_use> path;
  double cap = unlimited;
  double weight = 1;
};

/// The rate of each flow, given the capacity of each link.
/// Requires: as max_min::add_flow.
std::vector<double> max_min_reference(std::span<const double> capacities,
                                      std::span<const max_min_demand> flows);

} // namespace shoal::netem
