// The method 'pipeline' spawns the hosts of the role 'stage', and says what memory they take.
#pragma once

#include "scenarios/roles/role.hpp"

#include <caf/actor.hpp>

#include <cstdint>
#include <vector>

namespace shoal::scenarios {

/// Spawns the host of a stage. Requires: the scenario's method is 'pipeline'.
caf::actor spawn_stage_peer(const role_site& site);

/// The memory of a host of one stage, in bytes, without the values inside a pass.
struct stage_memory {
  std::uint64_t parameters = 0; ///< how many there are
  std::uint64_t weights = 0;    ///< parameters and the optimizer's state
  std::uint64_t gradients = 0;  ///< the sum in float64, one that waits, and the one of a pass
  std::uint64_t step = 0;       ///< the host's mean, the group's mean and the next state
  std::uint64_t total() const noexcept { return weights + gradients + step; }
};

struct pipeline_memory {
  std::vector<stage_memory> stages;
  /// Inputs and gradients that a trainer keeps until the step, for each sample of its part.
  std::uint64_t trainer_per_sample = 0;
};

/// Nothing for scenarios of other methods, and for models that cannot be cut.
pipeline_memory memory_of_pipeline(const scenario& what);

} // namespace shoal::scenarios
