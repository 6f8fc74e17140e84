// Lists of sample ranges from messages. checked_ranges() validates a list before any use.
#pragma once

#include "actors/ids.hpp"
#include "kernels/base/result.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace shoal::actors {

/// `ranges` in ascending order, with neighbours merged. Errors: more than `max_ranges` ranges, an
/// empty range, a range beyond 64 bits, two ranges that overlap.
result<std::vector<sample_range>> checked_ranges(std::span<const sample_range> ranges,
                                                 std::size_t max_ranges);

/// Appends [first, end), merged with the last range if they touch. More than 2^32 - 1 indices
/// become several ranges.
void append_range(std::vector<sample_range>& to, std::uint64_t first, std::uint64_t end);
inline void append_range(std::vector<sample_range>& to, const sample_range& range) {
  append_range(to, range.first, range.end());
}

std::uint64_t index_count(std::span<const sample_range> ranges) noexcept;

} // namespace shoal::actors
