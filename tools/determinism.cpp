#include "tools/determinism.hpp"

#include "scenarios/compare/run_diff.hpp"
#include "tools/arguments.hpp"
#include "tools/exit_codes.hpp"

#include <fmt/format.h>

#include <cstdio>

namespace shoal::tools {

result<determinism_check> determinism_check::begin(scenarios::scenario& what,
                                                   scenarios::runner_options& options) {
  if (what.world != "sim")
    return failure{
        fmt::format("--check-determinism: world {} is on the wall clock; only sim repeats exactly",
                    what.world)};
  auto scratch = scratch_directory::create();
  if (!scratch) return failure{scratch.error()};
  what.record.events = scenarios::event_detail::all;
  what.record.peers = 0;
  if (options.out.empty()) options.out = (*scratch / "first").string();
  return determinism_check(std::move(*scratch), what, options);
}

int determinism_check::finish(const scenarios::run_outcome& first, bool quiet) {
  if (first.interrupted) return exit_interrupted;
  const std::string first_directory = options_.out;
  options_.out = (scratch_ / "second").string();
  options_.baseline = false;
  auto runner = scenarios::runner::prepare(std::move(what_), std::move(options_));
  if (!runner) {
    fmt::print(stderr, "error: the second run: {}\n", runner.error());
    return exit_bad_input;
  }
  auto second = (*runner)->run();
  if (!second) {
    fmt::print(stderr, "error: the second run: {}\n", second.error());
    return exit_run_failed;
  }
  if (second->interrupted) return exit_interrupted;
  auto* to = quiet ? stderr : stdout;
  if (second->summary.event_hash == first.summary.event_hash &&
      second->summary.state_hash == first.summary.state_hash) {
    fmt::print(to, "\na second run had the same history and ended in the same state\n");
    return exit_ok;
  }
  fmt::print(stderr, "error: a second run was not the same (A is the first, B the second)\n");
  auto difference = scenarios::diff_runs(first_directory, scratch_ / "second");
  if (!difference) {
    return fail(difference.error(), exit_run_failed);
  }
  // The second run had no baseline, which is no difference.
  std::erase_if(difference->metrics, [](const scenarios::value_difference& x) {
    return x.name == "loss.baseline" || x.name == "loss.bigram";
  });
  fmt::print(to, "\n{}", scenarios::to_text(*difference));
  return exit_run_failed;
}

} // namespace shoal::tools
