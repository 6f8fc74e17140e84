// A random swarm in a random storm, drawn from one seed: swarm testing (whole features on or off,
// Groce et al., ISSTA 2012) over what a scenario can say, in the manner of FoundationDB's
// simulation. First the storm, then a time without faults in which the swarm has to come together
// again.
#pragma once

#include "kernels/base/units.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace shoal::scenarios {

struct chaos_options {
  /// Storm and healing together; zero: as long as some forty epochs of the swarm take, a few
  /// minutes or a few hours.
  duration length{};
};

/// How long a case lasts, in virtual time.
struct chaos_times {
  duration storm{};   ///< faults begin and end in it
  duration healing{}; ///< no fault begins any more
  duration bound{}; ///< in the last so much of `healing` every peer that is there has to take part
};

/// Pieces of a scenario, so that a shrinker can leave some out.
struct chaos_case {
  struct group {
    std::string name, options; ///< of `peers`: 'up: 1Mbit, …', without `count`
    unsigned count = 1;
  };
  std::uint64_t seed = 0;
  double epoch_seconds =
      0; ///< that an epoch should take: a few seconds in one swarm, ten minutes in another
  chaos_times times;
  bool auxiliary = false; ///< the group `aux` reduces and does not train
  std::string network, devices, data, workload, training,
      averaging;                   ///< flow mappings, without braces
  std::vector<group> groups;       ///< `core` loses nobody for good, `late` may
  std::vector<std::string> faults; ///< flow mappings
  unsigned failpoints = 0;         ///< percent: `failpoints`

  std::string yaml() const;
  unsigned peers() const;
  /// 'synchronous, tcp, 7 peers, 4 faults'.
  std::string text() const;
};

/// The same seed and options draw the same case, on every machine.
chaos_case draw_case(std::uint64_t seed, const chaos_options& how);

} // namespace shoal::scenarios
