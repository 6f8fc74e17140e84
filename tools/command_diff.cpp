// shoal diff A B: the first event that differs between two runs, and the consequences.
#include "scenarios/compare/run_diff.hpp"
#include "tools/arguments.hpp"
#include "tools/commands.hpp"
#include "tools/exit_codes.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cstdio>

namespace shoal::tools {

namespace {

struct diff_arguments {
  std::string a, b;
  bool json = false;
};

int diff(const diff_arguments& arguments) {
  auto difference = scenarios::diff_runs(arguments.a, arguments.b);
  if (!difference) return fail(difference.error());
  std::fputs(
      (arguments.json ? scenarios::to_json(*difference) : scenarios::to_text(*difference)).c_str(),
      stdout);
  return difference->same() ? exit_ok : exit_run_failed;
}

} // namespace

void add_diff(CLI::App& app, action& chosen) {
  auto arguments = std::make_shared<diff_arguments>();
  auto* command = app.add_subcommand(
      "diff", "compare two runs: the first event that differs, metrics and options");
  command->add_option("A", arguments->a, "a run directory")->required()->type_name("DIR");
  command->add_option("B", arguments->b, "another one")->required()->type_name("DIR");
  command->add_flag("--json", arguments->json, "print JSON on stdout");
  command->footer("Exit status: 0 the same events and results, 3 they differ, 1 a directory that "
                  "cannot be read.");
  command->callback([arguments, &chosen] { chosen = [arguments] { return diff(*arguments); }; });
}

} // namespace shoal::tools
