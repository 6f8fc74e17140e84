// Scripts with which shells complete the program's command line: commands, options, and values that
// are one of a few words. Other values are completed as names of files or folders where they are
// such.
#pragma once

#include "tools/command_tree.hpp"

#include <string>

namespace shoal::tools {

/// For bash 4.4 or newer. It needs no other package.
std::string bash_completion(const listed_command& tree);
/// For zsh 5. The file is `_shoal` in a folder of `$fpath`.
std::string zsh_completion(const listed_command& tree);
/// For fish 3.
std::string fish_completion(const listed_command& tree);

} // namespace shoal::tools
