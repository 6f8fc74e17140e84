// Observations of a peer that finds out how others can reach it.
#pragma once

#include "actors/observe.hpp"
#include "actors/reachability/reach.hpp"

#include <string_view>

namespace shoal::actors {

/// A peer has a new verdict.
struct reach_learned {
  static constexpr std::string_view observed_as = "reach_learned";
  actors::reach reach = actors::reach::unknown;
};

} // namespace shoal::actors
