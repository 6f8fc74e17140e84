// The strategy 'parameter-server': one group of all peers, in which peer 0 alone reduces. A round
// without that peer changes nothing.
#include "actors/averaging/averaging_strategy.hpp"
#include "actors/averaging/strategies/group_averager.hpp"

namespace shoal::actors {

averaging_strategy parameter_server_strategy() {
  averaging_strategy out;
  out.name = "parameter-server";
  out.meaning = "one group of all peers, in which the first one reduces";
  out.spawn = spawn_averager<group_averager>;
  out.plan = [](const averaging_swarm& swarm, unsigned) -> meeting_plan {
    return [peers = swarm.peers](unsigned) { return std::vector<std::uint32_t>(peers); };
  };
  out.largest_group = [](const averaging_swarm& swarm) { return swarm.peers; };
  out.server = 0;
  out.theory = [](const averaging_swarm& swarm, std::uint64_t t, double) -> std::optional<double> {
    if (swarm.failure > 0) return std::nullopt;
    return t == 0 ? 1 : 0;
  };
  return out;
}

} // namespace shoal::actors
