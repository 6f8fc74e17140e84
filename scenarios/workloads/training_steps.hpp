// The steps of one machine, with which a swarm is compared, and a check of their optimizer.
#pragma once

#include "scenarios/schema/checking.hpp"
#include "scenarios/schema/scenario.hpp"
#include "scenarios/workloads/prepared.hpp"

#include <cstdint>

namespace shoal::scenarios {

/// Reports an optimizer that cannot treat biases apart as it is told to: leave them without weight
/// decay, or unadapted. `model`: the workload's name.
void check_decay(const scenario& what, const char* model, checking& report);

/// The held-out loss of `of`, a workload with a source, after the steps of `how` on one machine. A
/// step has `batch` samples in their order, and gradients of `micro_batch` samples at once. The
/// gradients are added in their order, so the loss does not depend on the threads. NaN if
/// `how.on_step` ended the training.
double loss_alone(const prepared_workload& of, std::uint64_t micro_batch, std::uint64_t batch,
                  const reference_options& how);

} // namespace shoal::scenarios
