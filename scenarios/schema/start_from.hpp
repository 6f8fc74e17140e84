// What a scenario trains, as a checkpoint says it, and the checkpoint that it starts from.
#pragma once

#include <string>

#include "kernels/learn/checkpoint.hpp"
#include "scenarios/schema/scenario.hpp"

namespace shoal::scenarios {

kernels::transformer_config model_of(const workload_options& from);

/// Workload, tensors, model and kind of optimizer; no numbers. Errors: a workload that has none; a model that cannot be.
result<learn::checkpoint> shape_of(const scenario& what);

/// The checkpoint at `path`, from which `what` can go on. Errors: no checkpoint, a damaged one, of another model or optimizer.
result<learn::checkpoint> load_start(const scenario& what, const std::string& path);

}  // namespace shoal::scenarios
