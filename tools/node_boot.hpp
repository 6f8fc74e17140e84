// Measures how long the process of a node needs until the node is up.
#pragma once

#include "kernels/base/result.hpp"
#include "kernels/base/units.hpp"

#include <string>
#include <vector>

namespace shoal::tools {

/// Starts 'shoal node' a few times with these arguments, and kills each process as soon as it says
/// that it is up. Returns the median time from the start of the process.
/// Errors: a process that ends before, with the last line that it said.
result<duration> measure_boot(const std::vector<std::string>& arguments);

} // namespace shoal::tools
