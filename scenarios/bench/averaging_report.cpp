#include "scenarios/bench/averaging_report.hpp"

#include "kernels/base/json_text.hpp"
#include "scenarios/observe/output_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace shoal::scenarios {

namespace {

using json = nlohmann::ordered_json;

constexpr double levels[] = {1e-3, 1e-6, 1e-9};

std::string name_of(const study_cell& cell) {
  return cell.what.strategy->name;
}

/// The mean over the restarts. A restart that has ended counts with its last value.
std::vector<double> mean_curve(const averaging_figures& from,
                               std::vector<double> averaging_curve::*what) {
  std::size_t longest = 0;
  for (const auto& r : from.restarts) longest = std::max(longest, (r.*what).size());
  std::vector<double> out(longest);
  for (const auto& r : from.restarts)
    for (std::size_t t = 0; t < longest; ++t)
      out[t] +=
          (r.*what)[std::min(t, (r.*what).size() - 1)] / static_cast<double>(from.restarts.size());
  return out;
}

/// The mean over the restarts that reached the level.
std::optional<double> mean_at(const averaging_figures& from, double level,
                              std::vector<double> averaging_curve::*what) {
  double sum = 0;
  std::size_t count = 0;
  for (const auto& r : from.restarts)
    if (const auto t = r.rounds_to(level)) {
      sum += (r.*what)[*t];
      ++count;
    }
  return count > 0 ? std::optional<double>(sum / static_cast<double>(count)) : std::nullopt;
}

std::string table_head(const averaging_study& what, double failure) {
  auto out = fmt::format("{} peers on {}, vectors of {}, {} restart{}, each away in a round with "
                         "probability {}; {} one way, {} a line\n",
                         what.peers, kernels::to_string(what.grid), what.vector, what.restarts,
                         what.restarts == 1 ? "" : "s", failure, to_string(what.delay),
                         to_string(what.rate));
  out +=
      fmt::format("groups {}\n\n", what.groups == group_assignment::dht
                                       ? "find each other in a DHT of all peers"
                                       : "are given, not found in the DHT; the rest is the same");
  return out + fmt::format("{:<17} {:>6}  {:>11}  {:>11}  {:>11}  {:>9}  {}\n", "strategy", "below",
                           "rounds", "virtual s", "sent a peer", "reached", "|mean - true|^2");
}

/// The mean number of rounds to `level`. A restart that did not get there counts as `limit` rounds,
/// so without any that did there is no mean.
std::string rounds_text(const averaging_figures& figures, double level, unsigned limit) {
  if (figures.reached(level) == 0) return "not reached";
  return fmt::format("{:.2f}", figures.mean_rounds_to(level, limit));
}

std::string table_rows(const study_cell& cell) {
  const auto& f = cell.figures;
  const auto final_distance = mean_curve(f, &averaging_curve::from_mean).back();
  std::string out;
  for (double level : levels) {
    const auto seconds = mean_at(f, level, &averaging_curve::seconds),
               bytes = mean_at(f, level, &averaging_curve::bytes);
    const bool first = level == levels[0];
    out += fmt::format("{:<17} {:>6.0e}  {:>11}  {:>11}  {:>11}  {:>9}  {}\n",
                       first ? name_of(cell) : "", level, rounds_text(f, level, cell.what.rounds),
                       seconds ? fmt::format("{:.2f}", *seconds) : "-",
                       bytes ? bytes_text(static_cast<std::uint64_t>(*bytes)) : "-",
                       fmt::format("{}/{}", f.reached(level), f.restarts.size()),
                       first ? fmt::format("{:.1e}", final_distance) : "");
  }
  return out;
}

/// Missed expectations and defects, one line each.
std::vector<std::string> complaints(const study_figures& figures) {
  std::vector<std::string> out;
  for (const auto& e : figures.expectations)
    if (!e.met() && e.measured)
      out.push_back(fmt::format(
          "expect: {} at failure {} took {:.2f} rounds to {:g}, wanted {:.2f} +- {:.2f}",
          e.wanted.strategy, e.wanted.failure, *e.measured, e.wanted.below, e.rounds, e.within));
  for (const auto& cell : figures.cells) {
    const auto& f = cell.figures;
    if (f.misbehaved + f.bypassed > 0)
      out.push_back(fmt::format("a defect of Shoal: {} at failure {}: {} messages misbehaved, {} "
                                "bypassed the network",
                                name_of(cell), cell.what.failure, f.misbehaved, f.bypassed));
  }
  return out;
}

/// A table of the expectations beside the measured rounds; empty without expectations.
std::string expectations_text(const std::vector<judged_expectation>& expectations) {
  if (expectations.empty()) return {};
  auto out = fmt::format("{:<17} {:>8}  {:>6}  {:>8}  {:>16}\n", "expected of", "failure", "below",
                         "rounds", "expected");
  for (const auto& e : expectations)
    out += fmt::format("{:<17} {:>8}  {:>6.0e}  {:>8}  {:>16}  {}\n", e.wanted.strategy,
                       e.wanted.failure, e.wanted.below,
                       e.measured ? fmt::format("{:.2f}", *e.measured) : "-",
                       fmt::format("{:.2f} +- {:.2f}", e.rounds, e.within),
                       e.met()      ? "met"
                       : e.measured ? "missed"
                                    : "not judged");
  return out;
}

json as_json(const judged_expectation& e) {
  return {{"strategy", e.wanted.strategy},
          {"failure", e.wanted.failure},
          {"below", e.wanted.below},
          {"expected", e.rounds},
          {"within", e.within},
          {"measured", e.measured ? json(*e.measured) : json()},
          {"met", e.met()}};
}

} // namespace

result<study_figures> run_with_tables(const averaging_study& what, std::uint64_t seed,
                                      const program_hooks& hooks) {
  const auto print = [&](const std::string& text) {
    if (hooks.print) hooks.print(text);
  };
  std::optional<double> failure_shown;
  const auto begin_table = [&](double failure) {
    if (failure_shown == failure) return;
    print((failure_shown ? "\n" : "") + table_head(what, failure));
    failure_shown = failure;
  };
  study_hooks inner;
  inner.progress = hooks.progress;
  inner.on_cell = [&](const study_cell& cell) {
    begin_table(cell.what.failure);
    print(table_rows(cell));
  };
  if (!what.failures.empty()) begin_table(what.failures.front());
  return run_averaging_study(what, seed, inner);
}

std::string curves_text(const study_cell& cell) {
  constexpr std::size_t most = 12;
  const auto& f = cell.figures;
  auto out = fmt::format("{}, distortion of the initial one, mean of {}:\n", name_of(cell),
                         f.restarts.size());
  const auto measured = mean_curve(f, &averaging_curve::distortion);
  for (std::size_t t = 0; t < measured.size() && t <= most; ++t)
    out += fmt::format("  round {:>2}   measured {:>9.3e}{}\n", t, measured[t],
                       t < f.theory.size() ? fmt::format("   theory {:>9.3e}", f.theory[t]) : "");
  if (measured.size() > most + 1)
    out += fmt::format("  ... {} more; --json has all\n", measured.size() - most - 1);
  return out + fmt::format("  {} messages, {:.1f} s, of which {:.1f} s to build the swarm{}\n",
                           f.messages, f.wall_seconds, f.build_seconds,
                           f.misbehaved + f.bypassed > 0
                               ? fmt::format("; {} misbehaved, {} bypassed the network",
                                             f.misbehaved, f.bypassed)
                               : "");
}

outcome_chart curves_chart(const averaging_study& what, const std::vector<study_cell>& cells) {
  outcome_chart out;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const auto& cell = cells[i];
    if (i == 0 || cell.what.failure != cells[i - 1].what.failure)
      out.panels.push_back({fmt::format("{} peers on {}, failure {}", what.peers,
                                        kernels::to_string(what.grid), cell.what.failure),
                            {}});
    const auto& all = actors::averaging_strategies().all();
    const auto colour = static_cast<std::size_t>(
        std::find_if(all.begin(), all.end(),
                     [&](const auto& each) { return &each == cell.what.strategy; }) -
        all.begin());
    out.panels.back().curves.push_back(
        {name_of(cell), mean_curve(cell.figures, &averaging_curve::distortion), false, colour});
    if (!cell.figures.theory.empty())
      out.panels.back().curves.push_back(
          {name_of(cell) + ", theory", cell.figures.theory, true, colour});
  }
  return out;
}

json head_json(const averaging_study& what, std::uint64_t seed) {
  return {{"peers", what.peers},
          {"grid", kernels::to_string(what.grid)},
          {"vector", what.vector},
          {"seed", seed},
          {"rounds_at_most", what.rounds}};
}

json as_json(const study_cell& cell) {
  const auto& f = cell.figures;
  const auto& what = cell.what;
  json out;
  out["strategy"] = name_of(cell);
  out["assignment"] = what.assignment == group_assignment::dht ? "dht" : "given";
  out["restarts"] = f.restarts.size();
  for (double level : {1e-3, 1e-4, 1e-6, 1e-9}) {
    json& at = out["to"][fmt::format("{:.0e}", level)];
    const auto seconds = mean_at(f, level, &averaging_curve::seconds),
               bytes = mean_at(f, level, &averaging_curve::bytes);
    at["reached"] = f.reached(level);
    at["rounds"] = f.mean_rounds_to(level, what.rounds);
    at["virtual_seconds"] = seconds ? json(*seconds) : json();
    at["bytes_per_peer"] = bytes ? json(*bytes) : json();
  }
  out["distortion"] = mean_curve(f, &averaging_curve::distortion);
  if (what.strategy->rounds)
    out["expected_rounds"] = what.strategy->rounds(what.swarm(), what.rounds).mean;
  out["theory"] = f.theory.empty() ? json() : json(f.theory);
  out["squared_distance_from_mean"] = mean_curve(f, &averaging_curve::from_mean).back();
  out["peer_rounds"] = {{"ok", f.ok}, {"partial", f.partial}, {"failed", f.failed}};
  out["messages"] = f.messages;
  out["misbehaved"] = f.misbehaved;
  out["bypassed"] = f.bypassed;
  out["build_seconds"] = f.build_seconds;
  out["wall_seconds"] = f.wall_seconds;
  return out;
}

program_outcome outcome_of(const std::string& name, const averaging_study& what, std::uint64_t seed,
                           const study_figures& figures) {
  program_outcome out;
  json summary{{"scenario", name}};
  summary.update(head_json(what, seed));
  summary["failures"] = json::array();
  for (const auto& cell : figures.cells) {
    auto& failures = summary["failures"];
    if (failures.empty() || failures.back()["failure"] != cell.what.failure)
      failures.push_back({{"failure", cell.what.failure}, {"strategies", json::array()}});
    failures.back()["strategies"].push_back(as_json(cell));
  }
  summary["expectations"] = json::array();
  for (const auto& e : figures.expectations) summary["expectations"].push_back(as_json(e));
  out.summary = json_text(summary, 2) + "\n";
  out.closing = expectations_text(figures.expectations);
  out.charts.emplace_back("curves.svg", curves_chart(what, figures.cells));
  out.errors = complaints(figures);
  out.stopped = figures.stopped;
  return out;
}

} // namespace shoal::scenarios
