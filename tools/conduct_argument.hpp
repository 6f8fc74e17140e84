// The option --conduct of the commands that are one host of a swarm.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace shoal::tools {

struct conduct_argument {
  std::string kind; ///< a name of actors::conducts(); empty: not given

  /// `otherwise`: the help's text about the default.
  void add_to(CLI::App& command, const std::string& otherwise);
  /// Returns exit_ok, or another status after printing that there is no such conduct.
  int check() const;
};

} // namespace shoal::tools
