// Error messages for a wrong command line, which name the nearest command or option.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
class ParseError;
} // namespace CLI

namespace shoal::tools {

/// 'help' and 'help COMMAND' become '--help' and 'COMMAND --help'. Other arguments stay.
std::vector<std::string> without_help_command(std::vector<std::string> arguments);

/// The error for a first argument that should be a command and is none. Called before parsing.
/// Empty if there is no error.
std::string unknown_command(const CLI::App& app, const std::vector<std::string>& arguments);

/// The command that the user chose, which may be the subcommand of a command. `app` itself if none
/// was chosen.
const CLI::App& innermost(const CLI::App& app);

/// The text 'help bench averaging', for the chosen command.
std::string help_for(const CLI::App& app);

/// The error for an option that the command does not have. Called after parsing failed. Empty if
/// the failure has another cause.
std::string unknown_option(const CLI::App& app);

/// The text of the parser's error. The text for a missing argument shows the form of the command.
std::string parse_error_text(const CLI::App& app, const CLI::ParseError& error);

} // namespace shoal::tools
