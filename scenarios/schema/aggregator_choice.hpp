// The aggregator of a scenario: one of actors::aggregators() with its options. The options come
// from the aggregator's definition, so that a new aggregator is read, checked and printed without a
// change here.
#pragma once

#include "actors/averaging/aggregator_options.hpp"
#include "scenarios/schema/registry.hpp"

#include <cstdint>
#include <string>

namespace shoal::actors {
struct aggregator_definition;
}

namespace shoal::scenarios {

struct aggregator_settings {
  const actors::aggregator_definition* of = nullptr;
  actors::option_values chosen; ///< a value for each option
  bool operator==(const aggregator_settings&) const = default;
};

/// The aggregators as registered kinds, in their order.
kind_list aggregator_kinds();

struct aggregator_choice : choice {
  aggregator_choice(); ///< the mean
  /// Requires: the name is known.
  explicit aggregator_choice(const std::string& name);

  const actors::aggregator_definition& definition() const;
  /// Empty for an aggregator without options.
  const actors::option_values& chosen() const;
  /// The knowledge that an aggregator has of a round of `round_values` values.
  actors::aggregation_setting setting(std::uint64_t round_values = 0) const;
};

/// The kinds that one word in place of a mapping names.
inline kind_list short_kinds(const aggregator_choice&) {
  return aggregator_kinds();
}

} // namespace shoal::scenarios
