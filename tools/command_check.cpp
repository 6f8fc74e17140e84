// shoal check FILE: reports mistakes in a scenario. --show prints every option with its value.
#include "scenarios/observe/output_text.hpp"
#include "scenarios/plan/host_memory.hpp"
#include "scenarios/programs/program.hpp"
#include "scenarios/runner/runner.hpp"
#include "scenarios/schema/load.hpp"
#include "scenarios/workloads/prepared.hpp"
#include "tools/arguments.hpp"
#include "tools/commands.hpp"
#include "tools/exit_codes.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cstdio>

namespace shoal::tools {

namespace {

struct check_arguments {
  scenario_arguments scenario;
  bool show = false, hosts = false;
};

/// Prints what hosts without the data have to know of the corpus.
int print_corpus(const check_arguments& arguments, const scenarios::scenario& what) {
  const auto work = scenarios::prepare_workload(what);
  if (!work) return fail(work.error());
  const auto corpus = scenarios::fixed_corpus(what, **work);
  if (!corpus) return fail(corpus.error());
  fmt::print("{}: the corpus of {} samples has data.corpus_root {}\n", arguments.scenario.file,
             what.data.corpus_samples, corpus->root.hex());
  return exit_ok;
}

int check(const check_arguments& arguments) {
  auto scenario = arguments.scenario.load();
  if (!scenario) return exit_bad_input;
  if (arguments.show) {
    std::fputs(scenarios::to_yaml(*scenario).c_str(), stdout);
    return exit_ok;
  }
  const auto& program = scenario->program.definition();
  if (arguments.hosts && program.on_runner()) {
    const auto& data = scenario->data;
    for (const auto& name : scenarios::shard_hosts(*scenario))
      fmt::print("{} {} {}\n", name, to_string(data.up), to_string(data.down));
    for (const auto& host : scenarios::expand_hosts(*scenario))
      fmt::print("{} {} {}\n", host.name, to_string(host.up), to_string(host.down));
    return exit_ok;
  }
  if (program.on_runner())
    for (const auto& need : scenarios::memory_needs_of(*scenario))
      if (!need.fits())
        fmt::print(stderr,
                   "{}: warning: peers.{}: a host needs {} for {}, and its device has {}; 'shoal "
                   "plan' shows the methods that fit\n",
                   arguments.scenario.file, need.group, scenarios::bytes_text(need.bytes),
                   need.what, scenarios::bytes_text(need.has));
  fmt::print("{}: fine ({})\n", arguments.scenario.file, program.outline(*scenario));
  if (program.on_runner() && scenario->data.corpus_samples > 0)
    return print_corpus(arguments, *scenario);
  return exit_ok;
}

} // namespace

void add_check(CLI::App& app, action& chosen) {
  auto arguments = std::make_shared<check_arguments>();
  auto* command =
      app.add_subcommand("check", "check a scenario; --show prints every option with its value");
  arguments->scenario.add_to(*command);
  command->add_flag("--show", arguments->show, "print the resolved scenario");
  command->add_flag("--hosts", arguments->hosts,
                    "print its hosts, a line each: name, uplink, downlink");
  command->callback([arguments, &chosen] { chosen = [arguments] { return check(*arguments); }; });
}

} // namespace shoal::tools
