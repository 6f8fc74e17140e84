// Measures how fast this machine computes a scenario's model, and how much memory the model takes.
#pragma once

#include "kernels/base/result.hpp"
#include "kernels/base/units.hpp"
#include "scenarios/schema/inventory.hpp"
#include "scenarios/schema/scenario.hpp"

namespace shoal::scenarios {

/// Computes micro-batches and optimizer steps for about `time` on one thread, as a node does. Fills
/// in model, samples_per_second (the median), jitter, step_time, cores, memory and needs. The text
/// is generated, so no data files are needed.
/// Errors: a model that this build lacks; a workload of kind timing, which computes nothing.
result<void> measure_compute(const scenario& what, duration time, inventory_host& into);

/// Returns the number of parameters of the model. Errors: as in measure_compute().
result<std::uint64_t> values_of(const scenario& what);

} // namespace shoal::scenarios
