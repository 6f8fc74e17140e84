// The options that place a process in a swarm of processes: where others reach it, and which hosts
// it joins.
#pragma once

#include "netem/wire/address.hpp"

#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace shoal::tools {

struct place_arguments {
  std::string listen, advertise;
  std::vector<std::string> join;
  bool outbound_only = false;

  /// The addresses, with all names resolved.
  struct parsed {
    std::optional<netem::wire::address> listen; ///< empty: the process only dials
    std::string advertise;
    std::vector<netem::wire::address> join;
  };

  void add_to(CLI::App& command);
  /// Prints every error. Returns nothing if there is one.
  std::optional<parsed> parse() const;
};

/// The option --join alone, for processes that only dial.
void add_join(CLI::App& command, std::vector<std::string>& into);
/// Parses and resolves the addresses of --join. Prints every error, and returns nothing then.
std::optional<std::vector<netem::wire::address>> parse_join(const std::vector<std::string>& from);

} // namespace shoal::tools
