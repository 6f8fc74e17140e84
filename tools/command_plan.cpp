// shoal plan: the training method that should be the fastest for the hosts and the model of a
// scenario.
#include "scenarios/plan/method_plan.hpp"
#include "tools/arguments.hpp"
#include "tools/commands.hpp"
#include "tools/exit_codes.hpp"
#include "tools/interrupts.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include <memory>

namespace shoal::tools {

namespace {

struct plan_arguments {
  scenario_arguments scenario;
  std::uint64_t samples = 0, steps = 6;
  bool run = false, json = false, quiet = false;
};

int plan(const plan_arguments& arguments) {
  const auto scenario = arguments.scenario.load();
  if (!scenario) return exit_bad_input;
  auto made = scenarios::plan_methods(*scenario, arguments.scenario.file, arguments.scenario.sets,
                                      arguments.samples);
  if (!made) return fail(arguments.scenario.file + ": " + made.error());
  if (arguments.run) {
    const bool shows = !arguments.quiet && isatty(STDERR_FILENO) != 0;
    catch_interrupts();
    scenarios::plan_run_options options;
    options.epochs = arguments.steps;
    options.interrupted = interrupted;
    if (shows)
      options.on_row = [](const scenarios::plan_row& row) {
        fmt::print(stderr, "running {}{}{}\n", row.method, row.variant.empty() ? "" : ", ",
                   row.variant);
      };
    if (!scenarios::run_plan(*made, options)) return exit_interrupted;
  }
  fmt::print("{}", arguments.json ? to_json(*made) : table(*made));
  return exit_ok;
}

} // namespace

void add_plan(CLI::App& app, action& chosen) {
  auto arguments = std::make_shared<plan_arguments>();
  auto* command = app.add_subcommand(
      "plan", "predict which training method is the fastest for a scenario's model and hosts");
  command->add_option("scenario", arguments->scenario.file, "YAML file of the scenario")
      ->required()
      ->type_name("FILE");
  command->add_option("--set", arguments->scenario.sets, "override an option; repeatable")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command
      ->add_option("--samples", arguments->samples,
                   "show the time to so many samples (as the scenario trains)")
      ->type_name("N")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1'000'000'000'000'000}));
  command->add_flag("--run", arguments->run,
                    "check the predictions: run each row in the simulator for a few steps");
  command->add_option("--steps", arguments->steps, "with --run: steps after the first one (6)")
      ->type_name("N")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{10'000}));
  command->add_flag("--json", arguments->json, "print JSON on stdout");
  command->add_flag("-q,--quiet", arguments->quiet, "no progress on stderr");
  command->callback([arguments, &chosen] { chosen = [arguments] { return plan(*arguments); }; });
}

} // namespace shoal::tools
