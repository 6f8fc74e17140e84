// A random swarm in a random storm, drawn from one seed, as in FoundationDB's simulation. Swarm
// testing turns whole features of a scenario on or off. The storm of faults comes first. After it
// the swarm has time without faults, in which it must converge again.
// Source: Groce et al., "Swarm Testing", ISSTA 2012.
#pragma once

#include "kernels/base/units.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::scenarios {

struct chaos_options {
  /// Length of storm and healing together. Zero means about forty epochs of the swarm, which take
  /// between a few minutes and a few hours.
  duration length{};
  /// All swarms train with this method; empty: with those that have a share. Requires: it is
  /// registered, and has draw().
  std::string method;
  /// Each swarm has one more member, which attacks the others during storm and healing. The swarm
  /// then has at least five honest members of `core`, because a third of a round's members can
  /// stall it. Some of the swarms that can use security.kind btard have it.
  bool hostile = false;
  /// With `hostile`: all swarms have security.kind btard, and train with a method that allows it.
  bool guarded = false;
};

/// Lengths of the phases of a case, in virtual time.
struct chaos_times {
  duration storm{};   ///< all faults begin and end in this phase
  duration healing{}; ///< no fault begins in this phase
  duration bound{};   ///< every live peer must take part within this last share of `healing`
};

/// The group of the member that attacks the others, in a hostile case.
inline constexpr std::string_view attacker_group = "mallory";

/// The pieces of a scenario. shrink() leaves some of them out.
struct chaos_case {
  struct group {
    std::string name;
    std::string options; ///< options of the group: 'up: 1Mbit, …', without `count`
    unsigned count = 1;
  };
  std::uint64_t seed = 0;
  double epoch_seconds = 0; ///< planned duration of an epoch, from a few seconds to ten minutes
  chaos_times times;
  bool auxiliary = false; ///< the group `aux` reduces and does not train
  /// Sections of the scenario as YAML flow mappings, without braces.
  std::string network, devices, data, workload, training, averaging, security;
  std::vector<group> groups;       ///< hosts of `core` always come back, hosts of `late` may not
  std::vector<std::string> faults; ///< YAML flow mappings
  unsigned failpoints = 0;         ///< the option `failpoints`, in percent

  std::string yaml() const;
  unsigned peers() const;
  /// Returns a summary: 'synchronous, tcp, 7 peers, 4 faults'.
  std::string text() const;
};

/// Draws a case. The same seed and options give the same case on every machine.
chaos_case draw_case(std::uint64_t seed, const chaos_options& how);

} // namespace shoal::scenarios
