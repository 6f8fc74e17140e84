// Observations of a DHT node.
#pragma once

#include "actors/observe.hpp"

#include <cstdint>
#include <string_view>

namespace shoal::actors {

/// A DHT node answered a reader with records. The first of them expires at `expires_utc_ns`;
/// `utc_ns` is the node's clock.
struct records_given {
  static constexpr std::string_view observed_as = "records_given";
  std::int64_t expires_utc_ns = 0;
  std::int64_t utc_ns = 0;
};

} // namespace shoal::actors
