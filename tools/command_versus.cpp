// shoal versus A B: variants of a scenario held against each other.
#include "scenarios/compare/run_versus.hpp"
#include "scenarios/observe/run_directory.hpp"
#include "tools/arguments.hpp"
#include "tools/commands.hpp"
#include "tools/exit_codes.hpp"
#include "tools/versus_picture.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

namespace shoal::tools {

namespace {

struct versus_arguments {
  std::vector<std::string> places;
  std::string svg;
  bool json = false;
};

int versus(const versus_arguments& arguments) {
  const auto found = scenarios::hold_against(arguments.places);
  if (!found) return fail(found.error());
  std::fputs((arguments.json ? scenarios::to_json(*found) : scenarios::to_text(*found)).c_str(),
             stdout);
  if (arguments.svg.empty()) return exit_ok;
  if (auto written = scenarios::write_file(arguments.svg, versus_picture(*found)); !written)
    return fail(written.error(), exit_run_failed);
  if (!arguments.json) fmt::print("curves: {}\n", arguments.svg);
  return exit_ok;
}

} // namespace

void add_versus(CLI::App& app, action& chosen) {
  auto arguments = std::make_shared<versus_arguments>();
  auto* command = app.add_subcommand(
      "versus", "hold variants of a scenario against each other: which is better in what");
  command
      ->add_option(
          "RUNS", arguments->places,
          "run directories, or those of sweeps. Runs whose options differ in more than the "
          "seed are different variants; NAME=DIR names them")
      ->required()
      ->type_name("[NAME=]DIR...");
  command
      ->add_option(
          "--svg", arguments->svg,
          "draw the losses of all runs over time into this file, a colour for each variant")
      ->type_name("FILE");
  command->add_flag("--json", arguments->json, "print JSON on stdout");
  command->footer("Several seeds of each variant give 95 % confidence intervals: 'shoal sweep FILE "
                  "--vary KEY=A,B --seeds 5'\nruns them. 'shoal compare' judges a run by its "
                  "prediction instead.");
  command->callback([arguments, &chosen] { chosen = [arguments] { return versus(*arguments); }; });
}

} // namespace shoal::tools
