// Rebalancing of a pipeline on a churn trace: the policy alone, without a network. Nodes are equal.
//   throughput(t) = min over stages of the number of nodes in the stage
//   optimum(t) = floor(nodes / stages)
//   share = integral of throughput / integral of optimum
// A newcomer joins a random stage, or greedily the one with the most load. A node that ends is
// gone. Every `period`, the mover of actors::due_move goes over at once. The load of a stage with n
// nodes is 1 / n, shared by its nodes: each stage has the same work.
// Source: Ryabinin et al., "SWARM Parallelism", arXiv:2301.11913, section 4.4, on other traces.
#pragma once

#include "kernels/base/units.hpp"
#include "netem/trace.hpp"

#include <cstdint>

namespace shoal::scenarios {

enum class stage_joins : std::uint8_t { random, greedy };

struct rebalancing_policy {
  stage_joins joins = stage_joins::greedy;
  duration period{}; ///< 0: nobody moves
};

struct rebalancing_figures {
  double throughput = 0, optimum = 0; ///< integrals, in nodes of a stage times seconds
  std::uint64_t moves = 0;
  double seconds = 0; ///< time with a node for each stage
  double share() const noexcept { return optimum > 0 ? throughput / optimum : 0; }
};

/// Plays the trace from 0 to its end. Requires: stages > 0; the trace does not loop.
rebalancing_figures play_rebalancing(const netem::trace& nodes, std::uint32_t stages,
                                     rebalancing_policy how, std::uint64_t seed);

} // namespace shoal::scenarios
