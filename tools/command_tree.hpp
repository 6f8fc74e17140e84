// The commands of the program and their options, read from the command line's own declarations.
// Completions and manual pages are made from it, so that they say what `shoal help` says.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace shoal::tools {

struct listed_option {
  /// The sort of values that a shell can complete.
  enum class kind : unsigned char { nothing, word, file, folder };

  std::vector<std::string> long_names, short_names; ///< without dashes; both empty: an argument
  std::string argument;                             ///< name of an argument
  std::string value;                                ///< as help shows it; empty: a flag
  std::string meaning, default_value;
  std::vector<std::string> choices; ///< the only values; empty: any
  kind takes = kind::nothing;
  bool required = false;
};

struct listed_command {
  std::vector<std::string> path; ///< 'bench', 'averaging'; empty: the program itself
  std::string meaning;
  std::vector<listed_option> options; ///< arguments are among them
  std::vector<listed_command> commands;
};

/// The whole tree below `app`.
listed_command command_tree(const CLI::App& app);

/// The command at `path`. Null if there is none.
const listed_command* command_at(const listed_command& tree, const std::vector<std::string>& path);

/// All commands of the tree, each before those below it. The first one is the program itself.
std::vector<const listed_command*> all_commands(const listed_command& tree);

} // namespace shoal::tools
