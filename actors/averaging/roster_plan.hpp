// The part boundaries of a group, as every member computes them from its roster.
#pragma once

#include "actors/averaging/messages.hpp"
#include "actors/averaging/part_split.hpp"

#include <cstdint>
#include <vector>

namespace shoal::actors {

/// A rate counts at most so many times the lower median of the members' rates. So nobody buys the
/// whole vector with a claim.
inline constexpr double most_of_median_rate = 16;

/// A rate factor in [0, 1] as group_begun has it, and back.
std::uint16_t packed_factor(double factor);
double unpacked_factor(std::uint16_t packed);

/// The share of each member's part.
std::vector<double> shares_of(const group_begun& roster);
/// group_begun::boundaries, for one round or for two. The leader cuts by the same function.
std::vector<std::uint64_t> boundaries_of(const group_begun& roster);

} // namespace shoal::actors
