// Observations of the data shard: where each sample went.
#pragma once

#include "actors/ids.hpp"
#include "actors/observe.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::actors {

/// The data shard moved samples from one state to another.
enum class sample_state : std::uint8_t { leased, committed, returned, partial };
struct samples_moved {
  static constexpr std::string_view observed_as = "samples_moved";
  sample_state to = sample_state::leased;
  peer_id peer = 0;
  std::uint64_t epoch = 0;
  group_id group;
  std::vector<sample_range> samples;
  std::uint32_t parts_included = 0, parts_total = 0;
};

/// Samples that may have been used twice, or that belong to a losing branch.
struct samples_reported {
  static constexpr std::string_view observed_as = "samples_reported";
  std::string why;
  peer_id peer = 0;
  std::uint64_t epoch = 0;
  std::vector<sample_range> samples;
};

} // namespace shoal::actors
