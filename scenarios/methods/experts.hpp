// The method 'experts' spawns the hosts of the role 'expert', and says what memory they take.
#pragma once

#include "scenarios/roles/role.hpp"

#include <caf/actor.hpp>

#include <cstdint>

namespace shoal::scenarios {

/// Spawns the server of a host of experts. Requires: the scenario's method is 'experts'.
caf::actor spawn_expert_server(const role_site& site);

/// The memory of a swarm of experts, in bytes.
struct expert_memory {
  std::uint64_t experts = 0, hosts = 0; ///< all layers' experts; hosts of the role 'expert'
  std::uint64_t parameters = 0;         ///< how many one expert has
  std::uint64_t expert = 0;             ///< one expert: parameters and the optimizer's state
  std::uint64_t of_host = 0; ///< the experts of a host, and the copies of others' experts
  std::uint64_t trunk = 0;   ///< a trainer: parameters, the optimizer's state, gradient, next state
};

/// Zeros for scenarios of other methods.
expert_memory memory_of_experts(const scenario& what);

} // namespace shoal::scenarios
