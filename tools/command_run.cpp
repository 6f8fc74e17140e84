// shoal run FILE: runs a scenario.
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "kernels/base/units.hpp"
#include "scenarios/observe/summary.hpp"
#include "scenarios/stage/stage.hpp"
#include "tools/arguments.hpp"
#include "tools/commands.hpp"
#include "tools/exit_codes.hpp"
#include "tools/live_line.hpp"

namespace shoal::tools {

namespace {

volatile std::sig_atomic_t interrupts = 0;

void on_interrupt(int) {
  interrupts = interrupts + 1;
  if (interrupts > 2) _exit(130);  // the third one means it
}

struct run_arguments {
  scenario_arguments scenario;
  std::string out, until;
  bool force = false, json = false, quiet = false, no_baseline = false;
  unsigned workers = 0;
};

void print_people(const scenarios::run_outcome& outcome, const run_arguments& arguments) {
  fmt::print("{}", scenarios::table(outcome.summary));
  if (!outcome.text_after.empty() && outcome.summary.epochs > 0)
    fmt::print("\nIt wrote, before training:  {}\nand after:                  {}\n", outcome.text_before, outcome.text_after);
  if (!arguments.out.empty()) fmt::print("\nEverything is in {}\n", arguments.out);
}

int run(const run_arguments& arguments) {
  auto scenario = arguments.scenario.load();
  if (!scenario) return exit_bad_input;
  scenarios::stage_options options;
  options.out = arguments.out;
  options.force = arguments.force;
  options.threads = arguments.workers;
  options.baseline = !arguments.no_baseline;
  if (!arguments.until.empty()) {
    auto until = parse_duration(arguments.until);
    if (!until) {
      fmt::print(stderr, "--until: {}\n", until.error());
      return exit_usage;
    }
    options.until = *until;
  }
  live_line line(isatty(STDERR_FILENO) != 0);
  if (!arguments.quiet) options.on_status = [&](const scenarios::live_status& status) { line.show(status); };
  options.interrupted = [] { return interrupts > 0; };
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);

  auto stage = scenarios::stage::prepare(std::move(*scenario), std::move(options));
  if (!stage) {
    fmt::print(stderr, "error: {}\n", stage.error());
    return exit_bad_input;
  }
  auto outcome = (*stage)->run();
  line.clear();
  if (!outcome) {
    fmt::print(stderr, "error: {}\n", outcome.error());
    return exit_run_failed;
  }
  if (arguments.json)
    std::fputs(scenarios::to_json(outcome->summary).c_str(), stdout);
  else
    print_people(*outcome, arguments);
  if (outcome->interrupted) fmt::print(stderr, "interrupted: the run was ended early\n");
  bool failed = false;
  for (const auto& missed : outcome->missed) {
    fmt::print(stderr, "error: {}\n", missed);
    failed = true;
  }
  for (const auto& [name, check] : outcome->summary.invariants)
    if (check.violated > 0) {
      fmt::print(stderr, "error: invariant {} violated {} times, first {}\n", name, check.violated, check.first_violation);
      failed = true;
    }
  return failed ? exit_run_failed : outcome->interrupted ? 128 + SIGINT : exit_ok;
}

}  // namespace

void add_run(CLI::App& app, action& chosen) {
  auto arguments = std::make_shared<run_arguments>();
  auto* command = app.add_subcommand("run", "run a scenario");
  arguments->scenario.add_to(*command);
  command->add_option("-o,--out", arguments->out, "write the run directory here")->type_name("DIR");
  command->add_flag("--force", arguments->force, "replace the files of an earlier run in --out");
  command->add_option("--until", arguments->until, "end at this virtual time, as in 90s")->type_name("TIME");
  command->add_flag("--json", arguments->json, "print summary.json on stdout and nothing else there");
  command->add_flag("-q,--quiet", arguments->quiet, "no progress on stderr");
  command->add_flag("--no-baseline", arguments->no_baseline, "do not train the same on one machine to compare with");
  command->add_option("-j,--workers", arguments->workers, "compute threads (default: one for each core)")
      ->type_name("N")
      ->check(CLI::Range(1u, 1024u));
  command->callback([arguments, &chosen] { chosen = [arguments] { return run(*arguments); }; });
}

}  // namespace shoal::tools
