// The steps of one machine, with which a swarm is compared, and a check of their optimizer.
#pragma once

#include "actors/data/sample_source.hpp"
#include "actors/training/workload.hpp"
#include "scenarios/schema/checking.hpp"
#include "scenarios/schema/scenario.hpp"

#include <cstdint>

namespace shoal::scenarios {

/// Reports an optimizer that cannot treat biases apart as it is told to: leave them without weight
/// decay, or unadapted. `model`: the workload's name.
void check_decay(const scenario& what, const char* model, checking& report);

/// The state after `steps` steps of `batch` samples on one machine, with the samples in their order
/// and gradients of `micro_batch` samples at once.
actors::model_state trained_alone(const actors::workload& work, const actors::sample_source& source,
                                  std::uint64_t micro_batch, std::uint64_t batch,
                                  std::uint64_t steps);

} // namespace shoal::scenarios
