// Names of the fabric's endpoints, for the history hash and the event log.
#pragma once

#include "netem/events.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace shoal::scenarios {

/// One incarnation of one machine.
struct host_identity {
  std::string name; ///< the machine's name in the scenario, like 'home-3'
  std::uint32_t machine = 0;
  std::uint32_t incarnation = 0;
};

/// Asks for each host's identity once and remembers it. Thread safety: none.
class host_names {
public:
  using identify = std::function<host_identity(netem::host_index)>;
  explicit host_names(identify ask) : ask_(std::move(ask)) {}

  /// Requires: host != netem::no_host.
  const host_identity& of(netem::host_index host);
  /// The name of a host: 'home-3#0'; '-' for no host.
  std::string host(netem::host_index host);
  /// The name of an actor: 'home-3#0/2' (machine, incarnation, ordinal); '-' for no host.
  std::string actor(const netem::endpoint& where);

private:
  struct entry {
    host_identity identity;
    bool known = false;
  };
  identify ask_;
  std::vector<entry> entries_; // by host index; the fabric numbers incarnations from 0 on
};

} // namespace shoal::scenarios
