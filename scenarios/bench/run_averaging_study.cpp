#include "scenarios/bench/run_averaging_study.hpp"

#include "actors/averaging/aggregator.hpp"
#include "kernels/base/check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace shoal::scenarios {

namespace {

averaging_bench bench_of(const averaging_study& from, std::uint64_t seed,
                         const actors::averaging_strategy& strategy, double failure) {
  averaging_bench out;
  out.strategy = &strategy;
  out.peers = from.peers;
  out.grid = from.grid;
  out.group_size = from.group;
  out.failure = failure;
  out.rounds = static_cast<unsigned>(from.rounds);
  out.at_least = static_cast<unsigned>(from.at_least);
  out.vector = from.vector;
  out.aggregator = from.aggregator;
  out.seed = seed;
  out.restarts = static_cast<unsigned>(from.restarts);
  out.assignment = from.groups;
  out.delay = from.delay;
  out.rate = from.rate.bits_per_second;
  out.stop_at = study_stops_at;
  return out;
}

judged_expectation judge(const averaging_study& study, const study_expectation& wanted,
                         const std::vector<study_cell>& cells) {
  constexpr double usual = 0.5, standard_errors = 3, rounding = 1e-9;
  judged_expectation out{wanted, 0, wanted.within.value_or(usual), {}};
  const auto* strategy = actors::averaging_strategies().find(wanted.strategy);
  SHOAL_CHECK(strategy != nullptr, "the study was checked");
  if (wanted.rounds) {
    out.rounds = *wanted.rounds;
  } else {
    const auto swarm = bench_of(study, 0, *strategy, wanted.failure).swarm();
    const auto closed = strategy->rounds(swarm, static_cast<double>(study.rounds));
    out.rounds = closed.mean;
    if (!wanted.within)
      out.within = rounding + standard_errors * closed.deviation /
                                  std::sqrt(static_cast<double>(study.restarts));
  }
  const auto found = std::find_if(cells.begin(), cells.end(), [&](const study_cell& cell) {
    return cell.what.strategy == strategy && cell.what.failure == wanted.failure;
  });
  if (found != cells.end() && !found->figures.stopped)
    out.measured = found->figures.mean_rounds_to(wanted.below, static_cast<unsigned>(study.rounds));
  return out;
}

} // namespace

const char* strategy_names() {
  return actors::averaging_strategies().names();
}

const char* aggregator_names() {
  return actors::aggregators().names();
}

const std::string& standard_strategy() {
  return actors::averaging_strategies().all().front().name;
}

const char* strategies_meaning() {
  static const std::string text = [] {
    std::string out = "the strategies to compare, one after the other";
    for (const auto& each : actors::averaging_strategies().all())
      out += fmt::format(". `{}`: {}", each.name, each.meaning);
    return out;
  }();
  return text.c_str();
}

result<study_figures> run_averaging_study(const averaging_study& what, std::uint64_t seed,
                                          const study_hooks& hooks) {
  study_figures out;
  const auto all = static_cast<double>(what.failures.size() * what.strategies.size());
  for (const double failure_rate : what.failures)
    for (const auto& name : what.strategies) {
      if (out.stopped) break;
      const auto* strategy = actors::averaging_strategies().find(name);
      SHOAL_CHECK(strategy != nullptr, "the study was checked");
      const auto begun = static_cast<double>(out.cells.size());
      study_cell cell{bench_of(what, seed, *strategy, failure_rate), {}};
      if (hooks.progress)
        cell.what.progress = [&, begun](const program_progress& now) {
          return hooks.progress(
              {fmt::format("{}, {}", name, now.doing), (begun + now.share.value_or(0)) / all});
        };
      auto figures = run_averaging_bench(cell.what);
      if (!figures) return failure{figures.error()};
      out.stopped = figures->stopped;
      if (figures->restarts.empty()) break;
      cell.figures = std::move(*figures);
      if (hooks.on_cell) hooks.on_cell(cell);
      out.cells.push_back(std::move(cell));
    }
  for (const auto& wanted : what.expect) out.expectations.push_back(judge(what, wanted, out.cells));
  return out;
}

} // namespace shoal::scenarios
