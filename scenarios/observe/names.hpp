// Who stands behind an endpoint of the fabric: what the hash of history and the event log call it.
#pragma once

#include "netem/events.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace shoal::scenarios {

/// One incarnation of one machine.
struct host_identity {
  std::string name; ///< the machine's, as the scenario has it: 'home-3'
  std::uint32_t machine = 0;
  std::uint32_t incarnation = 0;
};

/// Asks once for each host and remembers. Thread safety: none.
class host_names {
public:
  using identify = std::function<host_identity(netem::host_index)>;
  explicit host_names(identify ask) : ask_(std::move(ask)) {}

  /// Requires: host != netem::no_host.
  const host_identity& of(netem::host_index host);
  /// 'home-3#0'; '-' for no host.
  std::string host(netem::host_index host);
  /// 'home-3#0/2': machine, incarnation, ordinal; '-' for no host.
  std::string actor(const netem::endpoint& where);

private:
  struct entry {
    host_identity identity;
    bool known = false;
  };
  identify ask_;
  std::vector<entry> entries_; // by host index: incarnations are numbered from 0 on
};

} // namespace shoal::scenarios
