// All aggregators of this program: one line each.
#include "actors/averaging/aggregator_mean.hpp"

namespace shoal::actors {

definition_list<aggregator_definition>& aggregators() {
  static definition_list<aggregator_definition> list{
      weighted_mean_definition(),
  };
  return list;
}

const aggregator_definition& mean_aggregator() {
  static const auto& mean = *aggregators().find("mean");
  return mean;
}

} // namespace shoal::actors
