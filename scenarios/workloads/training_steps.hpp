// Steps that workloads share. In some steps only some tensors decay. A swarm is compared with the
// training of one machine.
#pragma once

#include "actors/data/sample_source.hpp"
#include "actors/training/workload.hpp"
#include "kernels/decay_groups.hpp"
#include "kernels/optimizer.hpp"
#include "scenarios/schema/checking.hpp"
#include "scenarios/schema/scenario.hpp"

#include <cstdint>

namespace shoal::scenarios {

/// The state after a step with the mean gradient, in which `decays` says which tensors of the
/// workload's layout decay. Requires: check_decay() reported nothing.
actors::model_state step_with_decay_of(const actors::workload& work, const actors::model_state& at,
                                       const kernels::optimizer_config& optimizer,
                                       const payload& mean_gradient, kernels::decays decays);

/// Reports an optimizer that cannot leave biases without weight decay. `model`: the workload's
/// name.
void check_decay(const scenario& what, const char* model, checking& report);

/// The state after `steps` steps of `batch` samples on one machine, with the samples in their order
/// and gradients of `micro_batch` samples at once.
actors::model_state trained_alone(const actors::workload& work, const actors::sample_source& source,
                                  std::uint64_t micro_batch, std::uint64_t batch,
                                  std::uint64_t steps);

} // namespace shoal::scenarios
