// The checkpoint format of a scenario's model, and the checkpoint from which a scenario starts.
#pragma once

#include "kernels/compress/power_sgd.hpp"
#include "kernels/learn/checkpoint.hpp"
#include "scenarios/schema/scenario.hpp"

#include <string>
#include <vector>

namespace shoal::scenarios {

/// Returns PowerSGD for the gradients, with rank averaging.power_sgd_rank. Errors: an invalid rank,
/// or a rank that leaves more than half of the values of every matrix.
result<kernels::power_sgd> low_rank_of(const scenario& what);

/// Returns a checkpoint with the workload, tensors, model and kind of optimizer, but without
/// numbers. Errors: a workload without numbers, or an impossible model.
result<learn::checkpoint> shape_of(const scenario& what);

/// Loads the checkpoint at `path`, from which `what` can continue. A folder of Hugging Face and a
/// safetensors file begin at epoch 0 (import_model.hpp). Errors: a missing or damaged checkpoint,
/// or one of another model or optimizer.
result<learn::checkpoint> load_start(const scenario& what, const std::string& path);

} // namespace shoal::scenarios
