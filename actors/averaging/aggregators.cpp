// All aggregators of this program: one line each.
#include "actors/averaging/aggregator_centered_clip.hpp"
#include "actors/averaging/aggregator_geometric_median.hpp"
#include "actors/averaging/aggregator_krum.hpp"
#include "actors/averaging/aggregator_mean.hpp"
#include "actors/averaging/aggregator_median.hpp"
#include "actors/averaging/aggregator_trimmed_mean.hpp"

namespace shoal::actors {

definition_list<aggregator_definition>& aggregators() {
  static definition_list<aggregator_definition> list{
      weighted_mean_definition(),    median_definition(), trimmed_mean_definition(),
      geometric_median_definition(), krum_definition(),   multi_krum_definition(),
      centered_clip_definition(),
  };
  return list;
}

const aggregator_definition& mean_aggregator() {
  static const auto& mean = *aggregators().find("mean");
  return mean;
}

} // namespace shoal::actors
