// Workload 'transformer': a small decoder-only language model over the bytes of real text.
#pragma once

#include <memory>

#include "scenarios/stage/workloads.hpp"

namespace shoal::scenarios {

/// Errors: data files that cannot be read or are too short, if it `needs_data`.
result<std::unique_ptr<prepared_workload>> prepare_transformer(const scenario& from, bool needs_data);

}  // namespace shoal::scenarios
