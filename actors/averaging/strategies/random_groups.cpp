// The strategy 'random-groups': the peers are divided into groups at random, anew in each round.
// Source: Ryabinin et al., "Moshpit SGD", arXiv:2103.03239, theorem 3.2.
#include "actors/averaging/averaging_strategy.hpp"
#include "actors/averaging/strategies/group_averager.hpp"

#include <algorithm>
#include <cmath>

namespace shoal::actors {

averaging_strategy random_groups_strategy() {
  averaging_strategy out;
  out.name = "random-groups";
  out.meaning = "groups of `group` peers, drawn anew each round";
  out.spawn = spawn_averager<group_averager>;
  out.uses_group_size = true;
  out.plan = [](const averaging_swarm& swarm, unsigned restart) -> meeting_plan {
    return [peers = swarm.peers, size = swarm.group_size,
            draws = stream(swarm.seed, "partition", restart)](unsigned) mutable {
      return kernels::random_groups(peers, size, draws);
    };
  };
  // Peers that are left over join other groups.
  out.largest_group = [](const averaging_swarm& swarm) { return 2 * swarm.group_size; };
  out.theory = [](const averaging_swarm& swarm, std::uint64_t t, double) -> std::optional<double> {
    if (swarm.failure > 0) return std::nullopt;
    const auto n = static_cast<double>(swarm.peers);
    const auto groups = std::max(1.0, std::floor(n / static_cast<double>(swarm.group_size)));
    return std::pow(kernels::random_groups_factor(n, groups), static_cast<double>(t));
  };
  return out;
}

} // namespace shoal::actors
