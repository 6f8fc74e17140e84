// Who speaks to other hosts (node, status, drain, probe): with which keys, or without.
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
  /// exit_ok, or what is wrong was printed. Nothing in `into`: --insecure.
  int load(std::optional<netem::wire::credentials>& into) const;
};

} // namespace shoal::tools
