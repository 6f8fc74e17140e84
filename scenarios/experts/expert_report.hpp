// Runs a swarm of experts as the options of the program 'experts' say, and reports its figures.
#pragma once

#include "scenarios/experts/expert_swarm.hpp"
#include "scenarios/programs/experts.hpp"
#include "scenarios/programs/program_run.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace shoal::scenarios {

/// The swarm of these options. `training` and `held_out` are samples; if `training` is empty, the
/// swarm makes up its images. The spans outlive the swarm.
expert_swarm swarm_of(const experts_options& what, std::uint64_t seed,
                      std::span<const std::byte> training, std::span<const std::byte> held_out);

result<program_outcome> run_experts(const std::string& name, const experts_options& what,
                                    std::uint64_t seed, std::span<const std::byte> training,
                                    std::span<const std::byte> held_out,
                                    const program_hooks& hooks);

} // namespace shoal::scenarios
