// The strategy 'all-reduce': one group of all peers. A round in which a peer is missing changes
// nothing; any other round is exact.
#include "actors/averaging/averaging_strategy.hpp"
#include "actors/averaging/strategies/group_averager.hpp"

#include <cmath>

namespace shoal::actors {

averaging_strategy all_reduce_strategy() {
  averaging_strategy out;
  out.name = "all-reduce";
  out.meaning = "one group of all peers, which needs every one of them";
  out.spawn = spawn_averager<group_averager>;
  out.plan = [](const averaging_swarm& swarm, unsigned) -> meeting_plan {
    return [peers = swarm.peers](unsigned) { return std::vector<std::uint32_t>(peers); };
  };
  out.largest_group = [](const averaging_swarm& swarm) { return swarm.peers; };
  out.needs_everybody = true;
  out.theory = [](const averaging_swarm& swarm, std::uint64_t t, double) -> std::optional<double> {
    const auto all_here = std::pow(1 - swarm.failure, static_cast<double>(swarm.peers));
    return std::pow(1 - all_here, static_cast<double>(t));
  };
  out.rounds = [](const averaging_swarm& swarm, double limit) -> expected_rounds {
    const auto n = static_cast<double>(swarm.peers);
    return {kernels::all_reduce_rounds(n, swarm.failure, limit),
            kernels::all_reduce_deviation(n, swarm.failure, limit)};
  };
  return out;
}

} // namespace shoal::actors
