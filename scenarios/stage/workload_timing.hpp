// Workload 'timing': only sizes and durations, no numbers.
// Workload 'quadratic': f_i(x) = 1/2 |x - c_i|^2 where sample i's centre c_i is drawn from its index; the
// optimum is the mean of the centres. For averaging studies, where a wrong weight must show.
#pragma once

#include <memory>

#include "scenarios/stage/workloads.hpp"

namespace shoal::scenarios {

std::unique_ptr<prepared_workload> prepare_timing(const scenario& from);
std::unique_ptr<prepared_workload> prepare_quadratic(const scenario& from);

}  // namespace shoal::scenarios
