// Asks the hosts of a running swarm for their reports, from one host on to all that it leads to.
#pragma once

#include "kernels/base/result.hpp"
#include "netem/wire/address.hpp"
#include "netem/wire/credentials.hpp"
#include "scenarios/observe/node_report.hpp"

#include <chrono>
#include <map>
#include <optional>
#include <string>

namespace shoal::tools {

/// The time that a host has for an answer.
inline constexpr auto answer_timeout = std::chrono::seconds(5);

/// A host of the swarm, with all that is known about it.
struct seen_host {
  std::string where; // empty: the host cannot be dialled
  std::optional<scenarios::node_report> says;
  std::string why_not;    // the reason why it does not answer
  std::string known_from; // the neighbour that reported it
};

/// Asks the host at `join`, then its linked hosts, then theirs, and so on. Without `keys` the swarm
/// is an insecure one. All texts of the reports are safe to print. Errors: the first host does not
/// answer.
result<std::map<std::string, seen_host>>
ask_swarm(const netem::wire::address& join, const std::optional<netem::wire::credentials>& keys);

} // namespace shoal::tools
