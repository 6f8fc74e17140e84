#include "tools/branched_run.hpp"

#include "kernels/base/units.hpp"
#include "scenarios/observe/output_text.hpp"
#include "scenarios/workloads/prepared.hpp"
#include "tools/arguments.hpp"
#include "tools/build_identity.hpp"
#include "tools/exit_codes.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>

namespace shoal::tools {

namespace fs = std::filesystem;

int warn_of_changes(const scenarios::replay_plan& plan) {
  auto work = scenarios::prepare_workload(plan.what);
  if (!work) return fail(work.error());
  if (auto note = scenarios::data_note(plan.made_by, (*work)->data_digest()))
    fmt::print(stderr, "warning: {}\n", *note);
  for (const auto& note : plan.notes) fmt::print(stderr, "warning: {}\n", note);
  return exit_ok;
}

result<branched_run> branched_run::plan(const std::string& directory, const std::string& from,
                                        std::optional<std::uint64_t> seed_after) {
  const auto at = parse_duration(from);
  if (!at) return failure{"--from: " + at.error()};
  if (std::error_code ignored; fs::is_regular_file(directory, ignored))
    return failure{fmt::format("--from continues a run that --out kept: run '{}' with --out DIR, "
                               "and then DIR with --from {}",
                               directory, from)};
  auto plan = scenarios::plan_branch(directory, *at, seed_after, build_identity());
  if (!plan) return failure{plan.error()};
  return branched_run(directory, *at, std::move(*plan));
}

result<void> branched_run::apply(scenarios::runner_options& into) {
  std::error_code ignored;
  if (!into.out.empty() && fs::equivalent(directory_, into.out, ignored))
    return failure{"--out is the directory of the run that is continued"};
  into.branches = plan_.branches;
  into.moments = {from_};
  into.on_moment = [this](const scenarios::run_moment& moment) {
    if (moment.at == from_) reached_ = moment;
  };
  // Without the same end the hashes cannot be the same.
  if (into.until && into.until != plan_.run.made_by.until) plan_.same_future = false;
  if (!into.until) into.until = plan_.run.made_by.until;
  if (into.out.empty()) {
    auto made = scratch_directory::create();
    if (!made) return failure{made.error()};
    scratch_ = std::move(*made);
    into.out = (*scratch_ / "branch").string();
  }
  out_ = into.out;
  return {};
}

int branched_run::finish(const scenarios::run_outcome& outcome, bool quiet) const {
  auto* to = quiet ? stderr : stdout;
  if (!reached_) {
    // An interrupted run is no error.
    if (outcome.interrupted) return exit_ok;
    return fail(fmt::format("the run ended before {}: it is not the history of '{}'",
                            to_string(from_), directory_),
                exit_run_failed);
  }
  const auto past = scenarios::compare_past(fs::path(directory_) / "metrics.csv",
                                            fs::path(out_) / "metrics.csv", from_);
  if (!past) return fail(past.error(), exit_run_failed);
  if (past->first)
    return fail(fmt::format("the past is not that of '{}': metrics.csv differs at {} s. The "
                            "program, the data or the machine is another one",
                            directory_, *past->first),
                exit_run_failed);
  const auto future =
      plan_.branches.empty() || plan_.branches.back().at != from_
          ? std::string("the same random numbers as there")
          : fmt::format("the random numbers of seed {}", plan_.branches.back().seed);
  fmt::print(to,
             "\nIt continues '{}' from {}, after {} events (hash {}), with {}.\n"
             "The way to this moment took {}; {} rows of metrics up to there are the same\n",
             directory_, to_string(from_), reached_->events, reached_->event_hash.substr(0, 16),
             future, scenarios::seconds_text(reached_->wall_seconds), past->rows);
  if (!plan_.same_future || outcome.interrupted) return exit_ok;
  const auto verdict =
      scenarios::judge_replay(plan_.run.recorded, {outcome.summary.event_hash.value_or("none"),
                                                   outcome.summary.state_hash});
  std::fputs(verdict.text.c_str(), to);
  return verdict.same ? exit_ok : exit_run_failed;
}

} // namespace shoal::tools
