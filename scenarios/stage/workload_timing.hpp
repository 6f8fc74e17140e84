// Workload 'timing': only sizes and durations, no numbers.
#pragma once

#include <memory>

#include "scenarios/stage/workloads.hpp"

namespace shoal::scenarios {

/// Errors: values of training.optimizer that no optimizer can work with.
result<std::unique_ptr<prepared_workload>> prepare_timing(const scenario& from);

}  // namespace shoal::scenarios
