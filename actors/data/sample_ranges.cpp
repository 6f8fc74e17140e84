#include "actors/data/sample_ranges.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace shoal::actors {

result<std::vector<sample_range>> checked_ranges(std::span<const sample_range> ranges,
                                                 std::size_t max_ranges) {
  if (ranges.size() > max_ranges)
    return failure{fmt::format("{} sample ranges in one list, at most {} are allowed",
                               ranges.size(), max_ranges)};
  std::vector<sample_range> sorted(ranges.begin(), ranges.end());
  std::sort(sorted.begin(), sorted.end());
  std::vector<sample_range> out;
  out.reserve(sorted.size());
  std::uint64_t free_from = 0;
  for (const auto& range : sorted) {
    if (range.count == 0) return failure{"a sample range is empty"};
    if (range.first > std::numeric_limits<std::uint64_t>::max() - range.count)
      return failure{"a sample range leaves 64 bits"};
    if (range.first < free_from) return failure{"two sample ranges of one list overlap"};
    append_range(out, range.first, range.end());
    free_from = range.end();
  }
  return out;
}

void append_range(std::vector<sample_range>& to, std::uint64_t first, std::uint64_t end) {
  constexpr std::uint64_t most = std::numeric_limits<std::uint32_t>::max();
  if (!to.empty() && to.back().end() == first) {
    const auto more = std::min(end - first, most - to.back().count);
    to.back().count += static_cast<std::uint32_t>(more);
    first += more;
  }
  while (first < end) {
    const auto count = std::min(end - first, most);
    to.push_back({first, static_cast<std::uint32_t>(count)});
    first += count;
  }
}

std::uint64_t index_count(std::span<const sample_range> ranges) noexcept {
  std::uint64_t sum = 0;
  for (const auto& range : ranges) sum += range.count;
  return sum;
}

} // namespace shoal::actors
