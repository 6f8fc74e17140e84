// Lists of sample ranges as they stand in messages: checked before anything trusts them.
#pragma once

#include "actors/ids.hpp"
#include "kernels/base/result.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace shoal::actors {

/// `ranges` in ascending order, neighbours merged.
/// Errors: more than `max_ranges` of them, an empty one, one that leaves 64 bits, two that overlap.
result<std::vector<sample_range>> checked_ranges(std::span<const sample_range> ranges,
                                                 std::size_t max_ranges);

/// Adds [first, end) at the back, merged with the last range where they touch; more than 2^32 - 1
/// indices become several ranges.
void append_range(std::vector<sample_range>& to, std::uint64_t first, std::uint64_t end);
inline void append_range(std::vector<sample_range>& to, const sample_range& range) {
  append_range(to, range.first, range.end());
}

std::uint64_t index_count(std::span<const sample_range> ranges) noexcept;

} // namespace shoal::actors
