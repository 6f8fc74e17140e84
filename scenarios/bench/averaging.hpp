// How fast averaging brings a swarm to its mean: peers as live actors, each on a host of its own
// with its line, exchange real messages by a chosen strategy. Rounds begin for all at once, when
// the last peer's last one is over, as in the experiments of Ryabinin et al., arXiv:2103.03239,
// section 4.1; a peer is away in a round with probability `failure`, drawn anew each time, and
// keeps its values then. World: virtual time. Determinism: one seed, one history.
#pragma once

#include "actors/averaging/averaging_strategy.hpp"
#include "kernels/base/result.hpp"
#include "kernels/mixing.hpp"
#include "scenarios/programs/averaging_study.hpp"

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
  unsigned rounds = 50;        ///< at most
  std::size_t vector = 32;     ///< values of each peer, standard normal at first
  std::uint64_t seed = 1;
  unsigned restarts = 1;
  group_assignment assignment = group_assignment::dht;
  duration delay = std::chrono::milliseconds(50); ///< one way, between any two
  double rate = 100e6;                            ///< bit/s of each line, both ways
  double stop_at = 1e-9;                          ///< of the initial distortion
  unsigned at_least = 0;                          ///< rounds to do even if that is reached
  /// Called after each round, and while a large swarm is built; false: stop.
  std::function<bool(const std::string& doing)> progress;

  /// The swarm as the strategy sees it.
  actors::averaging_swarm swarm() const { return {peers, grid, group_size, failure, seed}; }
};

/// One restart. Index 0 is the beginning.
struct averaging_curve {
  double initial = 0;             ///< distortion (kernels/mixing.hpp)
  std::vector<double> distortion; ///< relative to it
  std::vector<double>
      from_mean; ///< squared distance of the peers' mean to the initial one, relative to it
  std::vector<double> seconds; ///< virtual
  std::vector<double> bytes;   ///< sent by a peer so far, mean

  /// The first round at which the distortion was below `level`; nothing if none was.
  std::optional<unsigned> rounds_to(double level) const;
};

struct averaging_figures {
  std::vector<averaging_curve> restarts;
  std::vector<double>
      theory; ///< expected relative distortion by round; empty: there is no closed form
  std::uint64_t messages = 0;                    ///< that crossed hosts
  std::uint64_t ok = 0, partial = 0, failed = 0; ///< peers' rounds
  std::uint64_t misbehaved = 0, bypassed = 0;
  double build_seconds = 0, wall_seconds = 0; ///< of this machine
  bool stopped = false;                       ///< by `progress`

  /// Mean over the restarts of the rounds to `level`, those that never got there counted as
  /// `limit`; and how many got there.
  double mean_rounds_to(double level, unsigned limit) const;
  std::size_t reached(double level) const;
};

/// Errors: options that contradict each other, in words.
result<averaging_figures> run_averaging_bench(const averaging_bench& what);

} // namespace shoal::scenarios
