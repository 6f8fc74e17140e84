// shoal completion SHELL and shoal man [COMMAND...]: scripts for shells and pages for man(1), made
// from the declarations of the command line.
#include "scenarios/observe/run_directory.hpp"
#include "scenarios/record/version.hpp"
#include "tools/arguments.hpp"
#include "tools/command_tree.hpp"
#include "tools/commands.hpp"
#include "tools/completion.hpp"
#include "tools/exit_codes.hpp"
#include "tools/man_page.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace shoal::tools {

namespace {

struct man_arguments {
  std::vector<std::string> command;
  std::string all;
};

int print_completion(const std::string& shell, const CLI::App& app) {
  const auto tree = command_tree(app);
  const auto text = shell == "bash"  ? bash_completion(tree)
                    : shell == "zsh" ? zsh_completion(tree)
                                     : fish_completion(tree);
  std::fputs(text.c_str(), stdout);
  return exit_ok;
}

int write_man_pages(const listed_command& tree, const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return fail(fmt::format("'{}' cannot be made: {}", folder.string(), error.message()));
  std::size_t pages = 0;
  for (const auto* command : all_commands(tree)) {
    const auto file = folder / (man_page_name(*command) + ".1");
    const auto page = man_page(*command, scenarios::version());
    if (auto written = scenarios::write_file(file, page); !written) return fail(written.error());
    ++pages;
  }
  fmt::print("{}: {} pages\n", folder.string(), pages);
  return exit_ok;
}

int print_man_page(const man_arguments& arguments, const CLI::App& app) {
  const auto tree = command_tree(app);
  if (!arguments.all.empty()) return write_man_pages(tree, arguments.all);
  const auto* command = command_at(tree, arguments.command);
  if (command == nullptr)
    return fail(fmt::format("there is no command '{}'; 'shoal help' lists all",
                            fmt::join(arguments.command, " ")),
                exit_usage);
  std::fputs(man_page(*command, scenarios::version()).c_str(), stdout);
  return exit_ok;
}

} // namespace

void add_completion(CLI::App& app, action& chosen) {
  auto shell = std::make_shared<std::string>();
  auto* command =
      app.add_subcommand("completion", "print a script with which a shell completes commands");
  command->add_option("SHELL", *shell, "the shell that reads the script")
      ->required()
      ->type_name("SHELL")
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->callback(
      [shell, &app, &chosen] { chosen = [shell, &app] { return print_completion(*shell, app); }; });
}

void add_man(CLI::App& app, action& chosen) {
  auto arguments = std::make_shared<man_arguments>();
  auto* command = app.add_subcommand("man", "print the manual page of a command for man(1)");
  auto* one = command->add_option("COMMAND", arguments->command, "as in 'bench averaging'")
                  ->type_name("COMMAND");
  command->add_option("--all", arguments->all, "write the pages of all commands into this folder")
      ->type_name("DIR")
      ->excludes(one);
  command->callback([arguments, &app, &chosen] {
    chosen = [arguments, &app] { return print_man_page(*arguments, app); };
  });
}

} // namespace shoal::tools
