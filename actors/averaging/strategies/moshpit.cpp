// The strategy 'moshpit': peers live on a grid, and round t averages along its axis t mod d. A full
// grid is exact after d rounds. Source: Ryabinin et al., "Moshpit SGD", arXiv:2103.03239.
#include "actors/averaging/averaging_strategy.hpp"
#include "actors/averaging/strategies/group_averager.hpp"

namespace shoal::actors {

averaging_strategy moshpit_strategy() {
  averaging_strategy out;
  out.name = "moshpit";
  out.meaning = "groups are the lines of `grid`, along another axis each round";
  out.spawn = spawn_averager<group_averager>;
  out.uses_grid = true;
  out.plan = [](const averaging_swarm& swarm, unsigned restart) -> meeting_plan {
    auto places = stream(swarm.seed, "places", restart);
    return [grid = swarm.grid,
            cells = kernels::place(swarm.grid, swarm.peers, places)](unsigned t) {
      std::vector<std::uint32_t> groups;
      for (const auto cell : cells)
        groups.push_back(
            static_cast<std::uint32_t>(kernels::line_of(grid, cell, kernels::axis_of(grid, t))));
      return groups;
    };
  };
  // Some cells hold several peers if there are more peers than cells.
  out.largest_group = [](const averaging_swarm& swarm) {
    return swarm.grid.side * ((swarm.peers + swarm.grid.cells() - 1) / swarm.grid.cells());
  };
  out.theory = [](const averaging_swarm& swarm, std::uint64_t t, double) -> std::optional<double> {
    if (swarm.failure > 0 || swarm.peers != swarm.grid.cells()) return std::nullopt;
    return kernels::full_grid_distortion(swarm.grid, t);
  };
  return out;
}

} // namespace shoal::actors
