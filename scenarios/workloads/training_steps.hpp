// The steps of one machine, with which a swarm is compared, and a check of their optimizer.
#pragma once

#include "actors/data/sample_source.hpp"
#include "actors/training/workload.hpp"
#include "scenarios/schema/checking.hpp"
#include "scenarios/schema/scenario.hpp"
#include "scenarios/workloads/prepared.hpp"

#include <cstdint>
#include <optional>

namespace shoal::scenarios {

/// Reports an optimizer that cannot treat biases apart as it is told to: leave them without weight
/// decay, or unadapted. `model`: the workload's name.
void check_decay(const scenario& what, const char* model, checking& report);

/// The state after the steps of `how` on one machine, with `batch` samples a step in their order
/// and gradients of `micro_batch` samples at once. The gradients are added in their order, so the
/// state does not depend on the threads. Nothing if `how.on_step` ended the training.
std::optional<actors::model_state> trained_alone(const actors::workload& work,
                                                 const actors::sample_source& source,
                                                 std::uint64_t micro_batch, std::uint64_t batch,
                                                 const reference_options& how);

} // namespace shoal::scenarios
