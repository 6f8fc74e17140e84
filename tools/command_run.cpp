// shoal run FILE: runs a scenario.
#include "scenarios/observe/summary.hpp"
#include "scenarios/programs/program.hpp"
#include "scenarios/runner/runner.hpp"
#include "tools/arguments.hpp"
#include "tools/branched_run.hpp"
#include "tools/commands.hpp"
#include "tools/determinism.hpp"
#include "tools/exit_codes.hpp"
#include "tools/interrupts.hpp"
#include "tools/live_line.hpp"
#include "tools/run_alone.hpp"
#include "tools/runner_arguments.hpp"
#include "tools/terminal.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>

namespace shoal::tools {

namespace {

struct run_arguments {
  scenario_arguments scenario;
  runner_arguments runner;
  bool no_baseline = false, check_determinism = false;
  std::string from;
  std::optional<std::uint64_t> seed_after;
};

void print_people(const scenarios::run_outcome& outcome, const run_arguments& arguments,
                  const std::string& no_report) {
  fmt::print("{}", scenarios::table(outcome.summary));
  if (!outcome.text_after.empty() && outcome.summary.epochs > 0) {
    constexpr std::string_view before = "  before training  ", after = "  after            ";
    auto columns = terminal_columns(STDOUT_FILENO).value_or(120);
    auto room = columns > after.size() + 20 ? columns - after.size() : 20;
    fmt::print("\nIt continues '{}'\n{}{}\n{}{}\n", outcome.text_prompt, before,
               one_line(outcome.text_before, std::min<std::size_t>(room, 60)), after,
               one_line(outcome.text_after, room));
  }
  if (arguments.runner.out.empty())
    fmt::print("\nNothing was kept; --out DIR keeps the run\n");
  else if (arguments.runner.no_report)
    fmt::print("\nEverything is in {}\n", arguments.runner.out);
  else
    fmt::print("\nEverything is in {}; {}\n", arguments.runner.out,
               no_report.empty() ? "report.html shows it"
                                 : "report.html could not be written: " + no_report);
}

/// A program that does without the runner, and without what the runner offers.
int without_runner(const scenarios::scenario& what, const run_arguments& arguments) {
  const std::pair<bool, const char*> of_runner[] = {
      {!arguments.runner.until.empty(), "--until"},
      {arguments.no_baseline, "--no-baseline"},
      {arguments.check_determinism, "--check-determinism"},
      {!arguments.runner.metrics.empty(), "--metrics"},
      {!arguments.runner.dashboard.empty(), "--dashboard"},
      {arguments.runner.workers > 0, "--workers"}};
  for (const auto& [given, option] : of_runner)
    if (given)
      return fail(fmt::format("{} is for training runs; {} is {}", option, arguments.scenario.file,
                              what.program.definition().title),
                  exit_usage);
  return run_alone(what, {arguments.runner.out, arguments.runner.force, arguments.runner.json,
                          arguments.runner.quiet});
}

/// The plan to continue the run in a directory. Prints errors, and sets `code` if there is one.
std::optional<branched_run> plan_branch(const run_arguments& arguments, int& code) {
  const auto& directory = arguments.scenario.file;
  const std::pair<bool, const char*> of_scenarios[] = {
      {!arguments.scenario.sets.empty(), "--set"},
      {arguments.scenario.seed.has_value(), "--seed"},
      {arguments.scenario.world.has_value(), "--world"},
      {arguments.check_determinism, "--check-determinism"}};
  for (const auto& [given, option] : of_scenarios)
    if (given) {
      code = fail(fmt::format("{} cannot change a run that is continued: with --from, only "
                              "--seed-after and --until change the future",
                              option),
                  exit_usage);
      return std::nullopt;
    }
  auto plan = branched_run::plan(directory, arguments.from, arguments.seed_after);
  if (!plan) {
    code = fail(plan.error());
    return std::nullopt;
  }
  if (code = warn_of_changes(plan->recorded()); code != exit_ok) return std::nullopt;
  return std::move(*plan);
}

/// Refuses options of branches without a branch, and a run directory in place of a scenario.
int check_no_branch(const run_arguments& arguments) {
  if (arguments.seed_after)
    return fail("--seed-after needs --from TIME: the moment from which the seed counts",
                exit_usage);
  std::error_code ignored;
  const auto& directory = arguments.scenario.file;
  if (std::filesystem::is_regular_file(std::filesystem::path(directory) / "run.yaml", ignored))
    return fail(fmt::format("'{0}' is a run directory. 'shoal run {0} --from TIME' continues the "
                            "run from a moment, 'shoal replay {0}' repeats it, and 'shoal run "
                            "{0}/run.yaml' runs its scenario",
                            directory));
  return exit_ok;
}

int run(const run_arguments& arguments) {
  std::optional<branched_run> branch;
  std::optional<scenarios::scenario> scenario;
  int code = exit_ok;
  if (!arguments.from.empty()) {
    if (branch = plan_branch(arguments, code); !branch) return code;
    scenario = branch->take_scenario();
  } else {
    if (code = check_no_branch(arguments); code != exit_ok) return code;
    scenario = arguments.scenario.load();
  }
  if (!scenario) return exit_bad_input;
  if (!scenario->program.definition().on_runner()) return without_runner(*scenario, arguments);
  scenarios::runner_options options;
  std::unique_ptr<scenarios::metrics_server> server;
  if (code = arguments.runner.apply(options, server); code != exit_ok) return code;
  if (server && !arguments.runner.quiet) fmt::print(stderr, "metrics: {}\n", server->url());
  options.baseline = !arguments.no_baseline;
  if (branch)
    if (auto applied = branch->apply(options); !applied) return fail(applied.error());
  live_line line(isatty(STDERR_FILENO) != 0, wants_colour(STDERR_FILENO));
  if (!arguments.runner.quiet)
    options.on_status = [&](const scenarios::live_status& status) { line.show(status); };
  options.interrupted = interrupted;
  catch_interrupts();
  std::optional<determinism_check> determinism;
  if (arguments.check_determinism) {
    auto begun = determinism_check::begin(*scenario, options);
    if (!begun) return fail(begun.error());
    determinism = std::move(*begun);
  }
  std::unique_ptr<run_page> page;
  if (code = arguments.runner.attach_page(options, page); code != exit_ok) return code;
  if (page && !page->url().empty()) fmt::print(stderr, "dashboard: {}\n", page->url());

  const auto exported = scenario->record.exports;
  auto runner = scenarios::runner::prepare(std::move(*scenario), std::move(options));
  if (!runner) return fail(runner.error());
  if (auto advice = (*runner)->advice(); !advice.empty())
    fmt::print(stderr, "warning: {}\n", advice);
  auto outcome = (*runner)->run();
  line.clear();
  if (!outcome) return fail(outcome.error(), exit_run_failed);
  if (!exported.empty() && arguments.runner.out.empty())
    fmt::print(stderr, "warning: record.export: without --out DIR nothing is exported\n");
  const std::string no_report = page ? page->finish() : std::string{};
  if (!print_summary(outcome->summary, arguments.runner.json,
                     [&] { print_people(*outcome, arguments, no_report); }))
    return exit_run_failed;
  if (outcome->late.excess() > 0.05)
    fmt::print(stderr,
               "warning: {} of {} steps ended late, {:.1f} s in all ({:.0f} % of the computing): "
               "this machine was too slow "
               "for the emulation, its times predict nothing\n",
               outcome->late.late_steps, outcome->late.steps, outcome->late.late_seconds,
               100 * outcome->late.excess());
  if (outcome->interrupted) fmt::print(stderr, "interrupted: the run was ended early\n");
  if (outcome->comparison_ended)
    fmt::print(stderr, "interrupted: the run is complete, but one machine was not trained to the "
                       "end, so loss.baseline is missing\n");
  if (!outcome->expectations_judged)
    fmt::print(stderr, "expect: not judged, the run was ended early\n");
  bool failed = false;
  for (const auto& missed : outcome->missed) {
    fmt::print(stderr, "error: {}\n", missed);
    failed = true;
  }
  failed = print_violations(outcome->summary) || failed;
  if (branch) {
    const int differs = branch->finish(*outcome, arguments.runner.json);
    if (differs != exit_ok) return differs;
  }
  if (determinism) {
    code = determinism->finish(*outcome, arguments.runner.json);
    line.clear();
    if (code != exit_ok) return code;
  }
  if (failed) return exit_run_failed;
  return outcome->interrupted || outcome->comparison_ended ? exit_interrupted : exit_ok;
}

} // namespace

void add_run(CLI::App& app, action& chosen) {
  auto arguments = std::make_shared<run_arguments>();
  auto* command = app.add_subcommand("run", "run a scenario");
  arguments->scenario.add_to(*command);
  arguments->runner.add_to(*command, "end at this virtual time, as in 90s",
                           "compute threads (default: one for each core)");
  command->add_flag("--no-baseline", arguments->no_baseline,
                    "do not train the same on one machine to compare with");
  command->add_flag(
      "--check-determinism", arguments->check_determinism,
      "run a second time, recording every event, and show the first one that differs");
  command
      ->add_option("--from", arguments->from,
                   "with a run directory in place of FILE: continue that run from this moment, "
                   "bit for bit the same unless --seed-after is given")
      ->type_name("TIME");
  command
      ->add_option("--seed-after", arguments->seed_after,
                   "the seed of all random streams from the moment of --from on: another future "
                   "of the same past")
      ->type_name("N");
  command->callback([arguments, &chosen] { chosen = [arguments] { return run(*arguments); }; });
}

} // namespace shoal::tools
