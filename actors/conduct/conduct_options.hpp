// The options of a host's conduct, as a scenario gives them.
#pragma once

#include "kernels/base/units.hpp"

#include <string>
#include <vector>

namespace shoal::actors {

/// How an attack is carried out. A bug has no options.
struct conduct_options {
  std::string kind = "honest";       ///< a name of conducts()
  duration from{};                   ///< the host is honest for this time after its start
  duration every{};                  ///< at least this time between two strikes; 0: always
  double strength = 1;               ///< see the meaning of the kind
  std::vector<std::string> messages; ///< types of messages that the attack changes; empty: all
  bool operator==(const conduct_options&) const = default;
};

} // namespace shoal::actors
