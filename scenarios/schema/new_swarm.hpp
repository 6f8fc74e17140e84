// The texts of a swarm that one person begins and friends join, for `shoal new NAME --from page`.
// They are its scenario, the script that starts it, and the instructions for the friends.
#pragma once

#include "scenarios/schema/scenario.hpp"

#include <cstdint>
#include <string>

namespace shoal::scenarios {

struct new_swarm {
  std::string name;                              ///< value of the key `name`; a name of hosts, too
  const workload_definition* workload = nullptr; ///< null: the default workload
  std::string text = "/usr/share/common-licenses/*"; ///< files that the model learns to write
  std::uint64_t friends = 2; ///< expected peers besides the one of this computer, [1, 1000]
  std::uint64_t steps = 1000;
  /// Where friends reach the host with the data. The peer of this computer has the next port.
  std::string host = "127.0.0.1";
  std::uint16_t port = 7000;
  std::string page = "127.0.0.1:8080"; ///< where the page is served
};

/// Whether `host` names this computer for itself alone.
bool is_loopback(const std::string& host);

/// The scenario. `shoal check` accepts it without a warning.
std::string to_yaml(const new_swarm& what);

/// The script that starts this computer's part: the host with the data, a peer, and the page. A
/// signal ends them in good order. `program`: the path of shoal.
std::string start_script(const new_swarm& what, const std::string& program);

/// The instructions to send to friends, with the scenario.
std::string invitation(const new_swarm& what);

/// The instructions for the person that begins the swarm.
std::string owner_notes(const new_swarm& what);

} // namespace shoal::scenarios
