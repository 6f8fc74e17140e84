// What is said about a command line that is wrong: the nearest command or option.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace shoal::tools {

/// 'help' and 'help COMMAND' as '--help' and 'COMMAND --help'; anything else as it is.
std::vector<std::string> without_help_command(std::vector<std::string> arguments);

/// Before parsing: a first argument that should be a command and is none. Empty if it is fine.
std::string unknown_command(const CLI::App& app, const std::vector<std::string>& arguments);

/// The command that was chosen, a command's command included; `app` itself if none was.
const CLI::App& innermost(const CLI::App& app);

/// 'help bench averaging', for the command that was chosen.
std::string help_for(const CLI::App& app);

/// After parsing failed: an option that the command does not have. Empty if that is not what is
/// wrong.
std::string unknown_option(const CLI::App& app);

} // namespace shoal::tools
