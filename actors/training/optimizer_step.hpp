// The optimizer step of a peer: kernels::step, applied to the shared state. Every workload that is
// not size-only uses it.
#pragma once

#include "actors/training/workload.hpp"
#include "kernels/decay_groups.hpp"
#include "kernels/optimizer.hpp"

#include <span>
#include <vector>

namespace shoal::actors {

/// The state at which training starts: epoch 0, with a fresh optimizer.
model_state fresh_state(const kernels::optimizer_config& optimizer, std::vector<float> parameters);

/// The state after a step with the mean gradient. `layout`: see kernels::step. `which`: the tensors
/// that weight decay shrinks; null: all.
/// Requires: the optimizer's state has the size that kernels::state_bytes gives. With `which`, and
/// a weight decay or adapt_undecayed = false, the optimizer's state is of floats, and the layout
/// covers all parameters.
model_state step_from(const model_state& at, const kernels::optimizer_config& optimizer,
                      const payload& mean_gradient,
                      std::span<const kernels::tensor_slot> layout = {},
                      kernels::decays which = nullptr);

} // namespace shoal::actors
