// Runs the models of a study of staleness one after the other, and reports their curves.
#pragma once

#include "scenarios/experts/stale_mixture.hpp"
#include "scenarios/programs/program_run.hpp"
#include "scenarios/programs/staleness_study.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace shoal::scenarios {

/// The width of a dense network whose block computes as much as `chosen` experts: both take 24
/// width^2 products for a row.
std::uint64_t dense_width_of(const staleness_study& what);

program_outcome run_staleness_study(const std::string& name, const staleness_study& what,
                                    std::uint64_t seed, std::span<const std::byte> training,
                                    std::span<const std::byte> held_out,
                                    const program_hooks& hooks);

} // namespace shoal::scenarios
