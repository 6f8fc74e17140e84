// shoal run FILE: runs a scenario.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "kernels/base/units.hpp"
#include "scenarios/observe/metrics_server.hpp"
#include "scenarios/observe/summary.hpp"
#include "scenarios/stage/stage.hpp"
#include "tools/arguments.hpp"
#include "tools/build_identity.hpp"
#include "tools/commands.hpp"
#include "tools/determinism.hpp"
#include "tools/exit_codes.hpp"
#include "tools/interrupts.hpp"
#include "tools/live_line.hpp"
#include "tools/run_study.hpp"
#include "tools/terminal.hpp"

namespace shoal::tools {

namespace {

struct run_arguments {
  scenario_arguments scenario;
  std::string out, until, metrics;
  bool force = false, json = false, quiet = false, no_baseline = false, check_determinism = false;
  unsigned workers = 0;
};

void print_people(const scenarios::run_outcome& outcome, const run_arguments& arguments) {
  fmt::print("{}", scenarios::table(outcome.summary));
  if (!outcome.text_after.empty() && outcome.summary.epochs > 0) {
    constexpr std::string_view before = "  before training  ", after = "  after            ";
    auto columns = terminal_columns(STDOUT_FILENO).value_or(120);
    auto room = columns > after.size() + 20 ? columns - after.size() : 20;
    fmt::print("\nIt continues '{}'\n{}{}\n{}{}\n", outcome.text_prompt, before,
               one_line(outcome.text_before, std::min<std::size_t>(room, 60)), after, one_line(outcome.text_after, room));
  }
  if (arguments.out.empty())
    fmt::print("\nNothing was kept; --out DIR keeps the run\n");
  else
    fmt::print("\nEverything is in {}\n", arguments.out);
}

int study(const scenarios::scenario& what, const run_arguments& arguments) {
  const std::pair<bool, const char*> of_training[] = {{!arguments.until.empty(), "--until"},
                                                      {arguments.no_baseline, "--no-baseline"},
                                                      {arguments.check_determinism, "--check-determinism"},
                                                      {!arguments.metrics.empty(), "--metrics"},
                                                      {arguments.workers > 0, "--workers"}};
  for (const auto& [given, option] : of_training)
    if (given) {
      fmt::print(stderr, "error: {} is for training runs; {} is a study of averaging\n", option, arguments.scenario.file);
      return exit_usage;
    }
  return run_study(what, {arguments.out, arguments.force, arguments.json, arguments.quiet});
}

int run(const run_arguments& arguments) {
  auto scenario = arguments.scenario.load();
  if (!scenario) return exit_bad_input;
  if (scenario->study) return study(*scenario, arguments);
  scenarios::stage_options options;
  options.out = arguments.out;
  options.force = arguments.force;
  options.threads = arguments.workers;
  options.baseline = !arguments.no_baseline;
  options.build = build_identity();
  if (!arguments.until.empty()) {
    auto until = parse_duration(arguments.until);
    if (!until) {
      fmt::print(stderr, "--until: {}\n", until.error());
      return exit_usage;
    }
    options.until = *until;
  }
  std::unique_ptr<scenarios::metrics_server> server;
  if (!arguments.metrics.empty()) {
    auto listening = scenarios::metrics_server::listen(arguments.metrics);
    if (!listening) {
      fmt::print(stderr, "error: --metrics: {}\n", listening.error());
      return exit_bad_input;
    }
    server = std::move(*listening);
    if (!arguments.quiet) fmt::print(stderr, "metrics: {}\n", server->url());
    options.on_metrics = [&server](const auto& values) { server->serve(values); };
  }
  live_line line(isatty(STDERR_FILENO) != 0);
  if (!arguments.quiet) options.on_status = [&](const scenarios::live_status& status) { line.show(status); };
  options.interrupted = interrupted;
  catch_interrupts();
  std::optional<determinism_check> determinism;
  if (arguments.check_determinism) {
    auto begun = determinism_check::begin(*scenario, options);
    if (!begun) {
      fmt::print(stderr, "error: {}\n", begun.error());
      return exit_bad_input;
    }
    determinism = std::move(*begun);
  }

  auto stage = scenarios::stage::prepare(std::move(*scenario), std::move(options));
  if (!stage) {
    fmt::print(stderr, "error: {}\n", stage.error());
    return exit_bad_input;
  }
  if (auto advice = (*stage)->advice(); !advice.empty()) fmt::print(stderr, "warning: {}\n", advice);
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
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    fmt::print(stderr, "error: cannot write to stdout\n");
    return exit_run_failed;
  }
  if (outcome->late.excess() > 0.05)
    fmt::print(stderr,
               "warning: {} of {} steps ended late, {:.1f} s in all ({:.0f} % of the computing): this machine was too slow "
               "for the emulation, its times predict nothing\n",
               outcome->late.late_steps, outcome->late.steps, outcome->late.late_seconds, 100 * outcome->late.excess());
  if (outcome->interrupted) fmt::print(stderr, "interrupted: the run was ended early\n");
  if (!outcome->expectations_judged) fmt::print(stderr, "expect: not judged, the run was ended early\n");
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
  if (determinism) {
    int code = determinism->finish(*outcome, arguments.json);
    line.clear();
    if (code != exit_ok) return code;
  }
  return failed ? exit_run_failed : outcome->interrupted ? exit_interrupted : exit_ok;
}

}  // namespace

void add_run(CLI::App& app, action& chosen) {
  auto arguments = std::make_shared<run_arguments>();
  auto* command = app.add_subcommand("run", "run a scenario");
  arguments->scenario.add_to(*command);
  command->add_option("-o,--out", arguments->out, "write the run directory here")->type_name("DIR");
  command->add_flag("--force", arguments->force, "replace the files of an earlier run in --out");
  command->add_option("--until", arguments->until, "end at this virtual time, as in 90s")->type_name("TIME");
  command->add_option("--metrics", arguments->metrics, "serve metrics to Prometheus here while it runs, as at 127.0.0.1:9464")
      ->type_name("ADDRESS:PORT");
  command->add_flag("--json", arguments->json, "print summary.json on stdout and nothing else there");
  command->add_flag("-q,--quiet", arguments->quiet, "no progress on stderr");
  command->add_flag("--no-baseline", arguments->no_baseline, "do not train the same on one machine to compare with");
  command->add_flag("--check-determinism", arguments->check_determinism,
                    "run a second time, recording every event, and show the first one that differs");
  command->add_option("-j,--workers", arguments->workers, "compute threads (default: one for each core)")
      ->type_name("N")
      ->check(CLI::Range(1u, 1024u));
  command->callback([arguments, &chosen] { chosen = [arguments] { return run(*arguments); }; });
}

}  // namespace shoal::tools
