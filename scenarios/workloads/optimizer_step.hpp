// The step that a scenario's `training.optimizer` takes, for every workload that has numbers.
#pragma once

#include "actors/training/workload.hpp"
#include "kernels/optimizer.hpp"
#include "scenarios/schema/scenario.hpp"

namespace shoal::scenarios {

/// Errors: values that no optimizer can work with.
result<kernels::optimizer_config> optimizer_of(const kernels::optimizer_config& from);

/// Where training starts: no epoch, a fresh optimizer.
actors::model_state fresh_state(const kernels::optimizer_config& optimizer, std::vector<float> parameters);

/// The state after a step with the mean gradient. `layout`: see kernels::step.
actors::model_state step_from(const actors::model_state& at, const kernels::optimizer_config& optimizer,
                              const payload& mean_gradient, std::span<const kernels::tensor_slot> layout = {});

/// workload::mended.
payload mended_state(const kernels::optimizer_config& optimizer, payload averaged, std::size_t parameters);

}  // namespace shoal::scenarios
