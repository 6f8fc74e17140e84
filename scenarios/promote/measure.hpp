// How fast this machine computes a scenario's model, and what memory that takes.
#pragma once

#include "kernels/base/result.hpp"
#include "kernels/base/units.hpp"
#include "scenarios/schema/inventory.hpp"
#include "scenarios/schema/scenario.hpp"

namespace shoal::scenarios {

/// Computes micro-batches and optimizer steps for about `time` on one thread, as a node does, and
/// fills in model, samples_per_second (the median), jitter, step_time, cores, memory and needs.
/// Text is made up, so that no data files are needed. Errors: a model that this build lacks; a
/// workload of kind timing, whose speed nobody can measure.
result<void> measure_compute(const scenario& what, duration time, inventory_host& into);

/// Numbers in the model. Errors: as measure_compute().
result<std::uint64_t> values_of(const scenario& what);

} // namespace shoal::scenarios
