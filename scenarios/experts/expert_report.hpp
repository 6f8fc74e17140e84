// Runs a swarm of experts as the options of the program 'experts' say, and reports its figures.
#pragma once

#include "scenarios/experts/expert_data.hpp"
#include "scenarios/experts/expert_swarm.hpp"
#include "scenarios/programs/experts.hpp"
#include "scenarios/programs/program_run.hpp"

#include <cstdint>
#include <string>

namespace shoal::scenarios {

/// The swarm of these options, which learns `data`.
expert_swarm swarm_of(const experts_options& what, std::uint64_t seed, const expert_data& data);

/// Errors: data that cannot be read.
result<program_outcome> run_experts(const std::string& name, const experts_options& what,
                                    std::uint64_t seed, const program_hooks& hooks);

} // namespace shoal::scenarios
