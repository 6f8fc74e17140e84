// Observations of a round: each member's contribution, and how the round ended for it.
#pragma once

#include "actors/averaging/certificate.hpp"
#include "actors/averaging/part_outcome.hpp"
#include "actors/ids.hpp"
#include "actors/observe.hpp"
#include "actors/reasons.hpp"
#include "kernels/base/payload.hpp"

#include <cstdint>
#include <string_view>
#include <vector>

namespace shoal::actors {

/// A member enters a round with this contribution (shared memory, not copied).
struct contributed {
  static constexpr std::string_view observed_as = "contributed";
  group_id group;
  std::uint64_t epoch = 0;
  std::uint32_t member = 0; ///< index in the group
  std::uint32_t members = 0;
  std::uint64_t weight = 0;
  std::vector<sample_range> samples;
  payload values;
  bool takes = true; ///< false: the member only reduces and wants no result
  /// A second round of the same members follows. Its observation holds the samples.
  bool first_of_two = false;
};

/// A member's round ended. `values` is the mean, empty unless ok or partial.
struct round_ended {
  static constexpr std::string_view observed_as = "round_ended";
  group_id group; ///< zero if no group formed
  std::uint64_t epoch = 0;
  std::uint32_t member = 0;
  std::uint32_t members = 0;
  actors::outcome outcome = outcome::failed;
  actors::reason reason = reason::none;
  std::vector<part_outcome> parts;
  payload values;
  std::uint64_t started_ns = 0; ///< when the group began (virtual)
};

/// A member has signed two statements that contradict each other.
struct contradicted {
  static constexpr std::string_view observed_as = "contradicted";
  peer_id culprit = 0;
  contradiction proof;
};

} // namespace shoal::actors
