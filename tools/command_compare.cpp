// shoal compare PREDICTED ACTUAL: the difference between a run and its prediction.
#include "scenarios/compare/run_comparison.hpp"
#include "tools/arguments.hpp"
#include "tools/commands.hpp"
#include "tools/exit_codes.hpp"
#include "tools/terminal.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

namespace shoal::tools {

namespace {

struct compare_arguments {
  std::string predicted, actual;
  std::vector<std::string> tolerance;
  bool json = false, force = false;
};

int compare(const compare_arguments& arguments) {
  const auto allowed = scenarios::tolerances::parse(arguments.tolerance);
  if (!allowed) return fail(fmt::format("--tolerance: {}", allowed.error()), exit_usage);
  const auto compared =
      scenarios::compare_runs(arguments.predicted, arguments.actual, *allowed, arguments.force);
  if (!compared) return fail(compared.error());
  const scenarios::comparison_style style{terminal_columns(STDOUT_FILENO).value_or(80),
                                          wants_colour(STDOUT_FILENO)};
  std::fputs((arguments.json ? scenarios::to_json(*compared) : scenarios::to_text(*compared, style))
                 .c_str(),
             stdout);
  return compared->within() ? exit_ok : exit_run_failed;
}

} // namespace

void add_compare(CLI::App& app, action& chosen) {
  auto arguments = std::make_shared<compare_arguments>();
  auto* command = app.add_subcommand(
      "compare",
      "show how far a run was from its prediction: round times, bytes, samples/s, loss, failures");
  command->add_option("PREDICTED", arguments->predicted, "a run directory, usually of a simulation")
      ->required()
      ->type_name("DIR");
  command
      ->add_option("ACTUAL", arguments->actual,
                   "another one, or a folder with the directories of a cluster's nodes")
      ->required()
      ->type_name("DIR");
  command
      ->add_option("--tolerance", arguments->tolerance,
                   "the allowed error: 10% for all judged figures, loss=3% for one, "
                   "bytes=off to leave one out "
                   "(default: round, rate and bytes 10%, loss 3%)")
      ->type_name("[KEY=]FRACTION")
      ->expected(1)
      ->take_all();
  command->add_flag("--force", arguments->force, "also compare runs of different scenarios");
  command->add_flag("--json", arguments->json, "print JSON on stdout");
  command->footer(fmt::format(
      "The keys are {}.\n"
      "'shoal diff' says whether two runs are the same, event by event, and where they differ.\n"
      "Exit status: 0 all judged figures are within their tolerance, 3 one is beyond it, 1 a "
      "directory that cannot\n"
      "be read or another scenario.",
      fmt::join(scenarios::figure_keys(), ", ")));
  command->callback([arguments, &chosen] { chosen = [arguments] { return compare(*arguments); }; });
}

} // namespace shoal::tools
