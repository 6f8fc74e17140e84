// shoal replay DIR: runs a run again and compares the hashes.
#include "scenarios/compare/replay.hpp"
#include "scenarios/compare/run_diff.hpp"
#include "scenarios/runner/runner.hpp"
#include "tools/arguments.hpp"
#include "tools/branched_run.hpp"
#include "tools/build_identity.hpp"
#include "tools/commands.hpp"
#include "tools/exit_codes.hpp"
#include "tools/interrupts.hpp"
#include "tools/live_line.hpp"
#include "tools/scratch_directory.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <optional>

namespace shoal::tools {

namespace {

struct replay_arguments {
  std::string directory, out;
  bool force = false, quiet = false;
  unsigned workers = 0;
};

int replay(const replay_arguments& arguments) {
  auto plan = scenarios::plan_replay(arguments.directory, build_identity());
  if (!plan) return fail(plan.error());
  if (!arguments.out.empty()) {
    std::error_code ignored;
    if (std::filesystem::equivalent(arguments.directory, arguments.out, ignored))
      return fail("--out is the directory that is replayed");
  }
  if (int code = warn_of_changes(*plan); code != exit_ok) return code;

  std::optional<scratch_directory> scratch;
  scenarios::runner_options options;
  options.out = arguments.out;
  options.force = arguments.force;
  if (arguments.out.empty()) {
    auto made = scratch_directory::create();
    if (!made) return fail(made.error(), exit_run_failed);
    scratch = std::move(*made);
    options.out = (*scratch / "replay").string();
  }
  options.threads = arguments.workers;
  options.baseline = false;
  options.build = build_identity();
  options.until = plan->made_by.until;
  options.branches = plan->made_by.branches;
  live_line line(isatty(STDERR_FILENO) != 0);
  if (!arguments.quiet)
    options.on_status = [&](const scenarios::live_status& status) { line.show(status); };
  catch_interrupts();
  options.interrupted = interrupted;
  const std::string out = options.out;

  auto runner = scenarios::runner::prepare(std::move(plan->what), std::move(options));
  if (!runner) return fail(runner.error());
  auto outcome = (*runner)->run();
  line.clear();
  if (!outcome) return fail(outcome.error(), exit_run_failed);
  if (outcome->interrupted) {
    fmt::print(stderr, "interrupted: nothing was compared\n");
    return exit_interrupted;
  }
  auto verdict = scenarios::judge_replay(
      plan->recorded, {outcome->summary.event_hash.value_or("none"), outcome->summary.state_hash});
  std::fputs(verdict.text.c_str(), stdout);
  if (!arguments.out.empty()) fmt::print("The replay is in {}\n", arguments.out);
  if (verdict.same) return exit_ok;
  if (auto difference = scenarios::diff_runs(arguments.directory, out)) {
    std::erase_if(difference->metrics, [](const scenarios::value_difference& x) {
      return x.name == "loss.baseline" || x.name == "loss.bigram";
    });
    if (arguments.out.empty()) difference->b = "the replay";
    fmt::print("\n{}", scenarios::to_text(*difference));
  } else {
    fmt::print(stderr, "note: the first difference is unknown: {}\n", difference.error());
  }
  return exit_run_failed;
}

} // namespace

void add_replay(CLI::App& app, action& chosen) {
  auto arguments = std::make_shared<replay_arguments>();
  auto* command =
      app.add_subcommand("replay", "run a run again and check that the result is the same");
  command->add_option("directory", arguments->directory, "a run directory")
      ->required()
      ->type_name("DIR");
  command->add_option("-o,--out", arguments->out, "keep the replay's run directory here")
      ->type_name("DIR");
  command->add_flag("--force", arguments->force, "replace the files of an earlier run in --out");
  command->add_flag("-q,--quiet", arguments->quiet, "no progress on stderr");
  command
      ->add_option("-j,--workers", arguments->workers,
                   "compute threads (default: one for each core)")
      ->type_name("N")
      ->check(CLI::Range(1u, 1024u));
  command->footer("Exit status: 0 both hashes are the same, 3 one differs, 1 a directory that "
                  "cannot be replayed.");
  command->callback([arguments, &chosen] { chosen = [arguments] { return replay(*arguments); }; });
}

} // namespace shoal::tools
