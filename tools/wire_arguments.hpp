// The options --keys and --insecure of the commands that speak to other hosts (node, status, drain,
// probe).
#pragma once

#include "netem/wire/credentials.hpp"

#include <optional>
#include <string>

namespace CLI {
class App;
}

namespace shoal::tools {

struct key_arguments {
  std::string folder;
  bool insecure = false;

  void add_to(CLI::App& command);
  /// Returns exit_ok, or another status after printing the error. `into` is empty with --insecure.
  int load(std::optional<netem::wire::credentials>& into) const;
};

} // namespace shoal::tools
