// Measures how fast averaging brings a swarm to its mean. Peers are live actors, each on a host of
// its own with its own line. They exchange real messages by a chosen strategy.
//
// All peers begin a round together, when the last peer has ended the round before. The experiments
// of Ryabinin et al., arXiv:2103.03239, section 4.1, do the same. A peer is away in a round with
// probability `failure`, drawn anew each time, and then keeps its values.
// World: virtual time. Determinism: one seed, one history.
#pragma once

#include "actors/averaging/averaging_strategy.hpp"
#include "kernels/base/result.hpp"
#include "kernels/mixing.hpp"
#include "scenarios/programs/averaging_study.hpp"
#include "scenarios/programs/program_run.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace shoal::scenarios {

struct averaging_bench {
  const actors::averaging_strategy* strategy = &actors::averaging_strategies().all().front();
  std::size_t peers = 1024;
  kernels::grid grid;
  std::size_t group_size = 32; ///< read by strategies with `uses_group_size`
  double failure = 0;          ///< [0, 1)
  unsigned rounds = 50;        ///< the most rounds
  std::size_t vector = 32;     ///< values of each peer, standard normal at first
  std::uint64_t seed = 1;
  unsigned restarts = 1;
  std::string aggregator = "mean"; ///< a name of actors::aggregators(); read by groups
  group_assignment assignment = group_assignment::dht;
  duration delay = std::chrono::milliseconds(50); ///< delay between any two peers, one way
  double rate = 100e6;                            ///< bit/s of each line, both ways
  double stop_at = 1e-9; ///< share of the initial distortion at which the rounds end
  unsigned at_least = 0; ///< rounds to run even if the distortion is below stop_at
  /// Called after each round, and while a large swarm is built. Returns false to stop.
  std::function<bool(const program_progress& now)> progress;

  /// The swarm as the strategy sees it.
  actors::averaging_swarm swarm() const { return {peers, grid, group_size, failure, seed}; }
};

/// The course of one restart. Index 0 is the state before the first round.
struct averaging_curve {
  double initial = 0;             ///< distortion (kernels/mixing.hpp)
  std::vector<double> distortion; ///< distortion by round, relative to `initial`
  /// Squared distance of the peers' mean to the initial mean, relative to `initial`.
  std::vector<double> from_mean;
  std::vector<double> seconds; ///< virtual time
  std::vector<double> bytes;   ///< bytes that a peer has sent so far, mean of the peers

  /// The first round at which the distortion was below `level`; empty if there was none.
  std::optional<unsigned> rounds_to(double level) const;
};

struct averaging_figures {
  std::vector<averaging_curve> restarts;
  std::vector<double>
      theory; ///< expected relative distortion by round; empty: there is no closed form
  std::uint64_t messages = 0;                    ///< messages between hosts
  std::uint64_t ok = 0, partial = 0, failed = 0; ///< ended rounds, counted for each peer
  std::uint64_t misbehaved = 0, bypassed = 0;
  double build_seconds = 0, wall_seconds = 0; ///< wall time on the machine that runs the bench
  bool stopped = false;                       ///< by `progress`

  /// The mean over the restarts of the number of rounds to `level`, and the number of restarts that
  /// reached it. A restart that did not reach it counts as `limit` rounds.
  double mean_rounds_to(double level, unsigned limit) const;
  std::size_t reached(double level) const;
};

/// Errors: options that contradict each other; the message explains how.
result<averaging_figures> run_averaging_bench(const averaging_bench& what);

} // namespace shoal::scenarios
