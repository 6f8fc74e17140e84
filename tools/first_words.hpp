// Answers to a command line that ends too early: the program's name alone, or a command that needs
// another word.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace shoal::tools {

/// The text for a call without arguments. It says what Shoal is and lists a few commands by
/// purpose.
std::string first_words();

/// The text for arguments that stop at a command with subcommands ('keys'). It lists the
/// subcommands and has an example. Empty for other arguments.
std::string words_that_may_follow(const CLI::App& app, const std::vector<std::string>& arguments);

} // namespace shoal::tools
