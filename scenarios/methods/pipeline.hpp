// The method 'pipeline' spawns the hosts of the role 'stage'.
#pragma once

#include "scenarios/roles/role.hpp"

#include <caf/actor.hpp>

namespace shoal::scenarios {

/// Spawns the host of a stage. Requires: the scenario's method is 'pipeline'.
caf::actor spawn_stage_peer(const role_site& site);

} // namespace shoal::scenarios
