// The choice of the peer of a stage that gets the next task, in proportion to the peers' rates.
//   V: virtual time of the stage, in seconds of the whole stage; a task of size t adds t / sum r
//   start(i), finish(i) = start(i) + t / r(i): of peer i's next task
//   next: among the peers with start <= V the one with the least finish; ties go to the smaller id
// With steady rates and equal tasks, after n tasks peer i has had n r(i) / sum r of them, off by at
// most one. A peer that joins starts at V, so it gets work at once.
// A rate is the mean of measurements: an exponential one, corrected for its start. A peer without
// measurements has the mean rate of the others. A peer tells itself how long it computed. So its
// rate counts up to `most_lead` times the median, of two measured peers the slower one's. Source of
// the wiring: Ryabinin et al., "SWARM Parallelism", arXiv:2301.11913, section 3.1 and algorithm 1.
// Its heap of finish times alone lets fast peers lag by many tasks. The rule with start times is
// WF2Q: Bennett and Zhang, INFOCOM 1996.
#pragma once

#include "actors/ids.hpp"

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

namespace shoal::actors {

class stage_wiring {
public:
  /// Weight of a new measurement in the mean.
  static constexpr double smoothing = 0.1;
  static constexpr double most_lead = 128;

  /// Does nothing for a peer that is known.
  void join(peer_id peer);
  void leave(peer_id peer);
  bool knows(peer_id peer) const { return find(peer) != nullptr; }
  std::size_t size() const noexcept { return peers_.size(); }

  /// A task of `size` has taken the peer `seconds`. Ignores peers that are not known. Requires:
  /// size > 0.
  void measured(peer_id peer, double seconds, double size);
  /// Tasks of size 1 per second.
  double rate(peer_id peer) const;

  /// The peer for a task of this size, none of `without`; empty if no peer is left. Requires:
  /// size > 0. Complexity: peers.
  std::optional<peer_id> choose(double size, const std::set<peer_id>& without = {});

private:
  struct entry {
    double start = 0;
    /// The mean of the seconds for a task of size 1, times `weight`, which tends to 1.
    double mean = 0, weight = 0;
  };
  struct known {
    peer_id peer = 0;
    entry of;
  };
  /// The rate that counts at most.
  double most_rate() const;
  double mean_rate() const;
  const entry* find(peer_id peer) const;
  std::vector<known>::const_iterator place_of(peer_id peer) const;

  std::vector<known> peers_; // ascending: each task reads all of them
  double now_ = 0;
  double largest_ = 0; // size of the largest task so far
};

} // namespace shoal::actors
