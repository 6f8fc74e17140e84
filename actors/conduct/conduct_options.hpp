// The options of a host's conduct, as a scenario gives them.
#pragma once

#include "kernels/base/units.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace shoal::actors {

class collusion;

/// The contributions that the attackers of a group see.
enum class attacker_knowledge : std::uint8_t {
  colluders, ///< contributions of the group itself, without the attack
  everybody, ///< contributions of all members: the worst case, only in simulations
};

/// How an attack is carried out. A bug has no options.
struct conduct_options {
  std::string kind = "honest";       ///< a name of conducts()
  duration from{};                   ///< the host is honest for this time after its start
  duration every{};                  ///< at least this time between two strikes; 0: always
  double strength = 1;               ///< see the meaning of the kind
  std::vector<std::string> messages; ///< types of messages that the attack changes; empty: all
  std::uint64_t from_epoch = 0;      ///< the host is honest in earlier epochs
  std::uint64_t every_epochs = 1;    ///< the host strikes in every so many epochs from there on
  attacker_knowledge knows = attacker_knowledge::colluders;
  /// The knowledge that the attackers of a group share; the runner sets it.
  std::shared_ptr<collusion> with{};
  bool operator==(const conduct_options&) const = default;
};

} // namespace shoal::actors
