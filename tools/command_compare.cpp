// shoal compare PREDICTED ACTUAL: how far a run was from its prediction.
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
      "how far a run was from its prediction: round times, bytes, samples/s, loss, failures");
  command->add_option("PREDICTED", arguments->predicted, "the run directory of a simulation, say")
      ->required()
      ->type_name("DIR");
  command
      ->add_option("ACTUAL", arguments->actual,
                   "another one, or a folder with the directories of a cluster's nodes")
      ->required()
      ->type_name("DIR");
  command
      ->add_option("--tolerance", arguments->tolerance,
                   "how far off a figure may be: 10% for all that are judged, loss=3% for one, "
                   "bytes=off not to judge it "
                   "(default: round, rate and bytes 10%, loss 3%)")
      ->type_name("[KEY=]FRACTION")
      ->expected(1)
      ->take_all();
  command->add_flag("--force", arguments->force, "compare runs of scenarios that differ, too");
  command->add_flag("--json", arguments->json, "print JSON on stdout");
  command->footer(fmt::format(
      "The keys are {}.\n"
      "Whether two runs are the same, event by event, and where they part, says 'shoal diff'.\n"
      "Exit status: 0 all that is judged is within its tolerance, 3 something is beyond it, 1 a "
      "directory that cannot\n"
      "be read or another scenario.",
      fmt::join(scenarios::figure_keys(), ", ")));
  command->callback([arguments, &chosen] { chosen = [arguments] { return compare(*arguments); }; });
}

} // namespace shoal::tools
