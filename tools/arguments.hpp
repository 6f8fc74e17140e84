// Arguments that several subcommands share: a scenario and the options that override it.
#pragma once

#include "scenarios/schema/diagnostic.hpp"
#include "scenarios/schema/scenario.hpp"
#include "tools/exit_codes.hpp"

#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace shoal::tools {

struct scenario_arguments {
  std::string file;
  std::vector<std::string> sets;
  std::optional<std::string> seed, world;

  void add_to(CLI::App& command);
  /// Loads the scenario and prints every error and warning to stderr. Returns nothing if there are
  /// errors.
  std::optional<scenarios::scenario> load() const;
};

/// Returns whether the scenario's program runs on hosts, as nodes need. Prints an error on stderr
/// if it does not.
bool runs_on_nodes(const scenarios::scenario& what, const std::string& file);

/// Prints the reason on stderr. Returns the exit status.
int fail(const std::string& why, int status = exit_bad_input);

/// Prints diagnostics on stderr.
void print_diagnostics(const std::vector<scenarios::diagnostic>& what);

/// This machine's name, without its domain; empty if it has none.
std::string host_name();

/// Prints on stderr that `word` is no `what` ('format'), and the nearest known word or all of them.
void unknown_word(const char* option, const char* what, const std::string& word,
                  const std::vector<std::string>& known);

/// Whether a stream is a terminal that wants colours.
bool wants_colour(int descriptor);

} // namespace shoal::tools
