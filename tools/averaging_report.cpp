#include "tools/averaging_report.hpp"

#include "scenarios/observe/text.hpp"
#include "scenarios/schema/describe_study.hpp"
#include "scenarios/schema/values.hpp"
#include "tools/averaging_plot.hpp"
#include "tools/interrupts.hpp"
#include "tools/terminal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

namespace shoal::tools {

namespace {

using json = nlohmann::ordered_json;
using scenarios::averaging_curve;
using scenarios::averaging_figures;
using scenarios::averaging_study;
using scenarios::study_cell;

constexpr double levels[] = {1e-3, 1e-6, 1e-9};

std::string name_of(const study_cell& cell) {
  return cell.what.strategy->name;
}

/// Of the restarts that are long enough; those that ended stay at their last value.
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

/// Means over the restarts that got there.
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
      fmt::format("groups {}\n\n", what.groups == scenarios::group_assignment::dht
                                       ? "find together in a DHT of all peers"
                                       : "are given, not found in the DHT; all else is the same");
  return out + fmt::format("{:<17} {:>6}  {:>8}  {:>11}  {:>11}  {:>9}  {}\n", "strategy", "below",
                           "rounds", "virtual s", "sent a peer", "reached", "|mean - true|^2");
}

std::string table_rows(const study_cell& cell) {
  const auto& f = cell.figures;
  const auto final_distance = mean_curve(f, &averaging_curve::from_mean).back();
  std::string out;
  for (double level : levels) {
    const auto seconds = mean_at(f, level, &averaging_curve::seconds),
               bytes = mean_at(f, level, &averaging_curve::bytes);
    const bool first = level == levels[0];
    out += fmt::format("{:<17} {:>6.0e}  {:>8.2f}  {:>11}  {:>11}  {:>9}  {}\n",
                       first ? name_of(cell) : "", level, f.mean_rounds_to(level, cell.what.rounds),
                       seconds ? fmt::format("{:.2f}", *seconds) : "-",
                       bytes ? scenarios::bytes_text(static_cast<std::uint64_t>(*bytes)) : "-",
                       fmt::format("{}/{}", f.reached(level), f.restarts.size()),
                       first ? fmt::format("{:.1e}", final_distance) : "");
  }
  return out;
}

} // namespace

result<scenarios::study_figures>
run_study_on_terminal(const averaging_study& what, std::uint64_t seed, const study_output& output) {
  const auto columns =
      output.json || output.quiet ? std::nullopt : terminal_columns(fileno(stderr));
  const auto clear = [&] {
    if (columns) fmt::print(stderr, "\r\033[K");
  };
  std::optional<double> failure_shown;
  scenarios::study_hooks hooks;
  hooks.progress = [&](const std::string& doing) {
    if (columns) fmt::print(stderr, "\r\033[K{}", one_line(doing, *columns - 1));
    return !interrupted();
  };
  const auto begin_table = [&](double failure) {
    if (output.json || failure_shown == failure) return;
    fmt::print("{}{}", failure_shown ? "\n" : "", table_head(what, failure));
    std::fflush(stdout);
    failure_shown = failure;
  };
  hooks.on_cell = [&](const study_cell& cell) {
    clear();
    begin_table(cell.what.failure);
    if (!output.json) fmt::print("{}", table_rows(cell));
    std::fflush(stdout);
  };
  if (!what.failures.empty()) begin_table(what.failures.front());
  auto out = scenarios::run_averaging_study(what, seed, hooks);
  clear();
  return out;
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

std::string expectations_text(const std::vector<scenarios::judged_expectation>& expectations) {
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

std::string curves_svg(const averaging_study& what, const std::vector<study_cell>& cells) {
  std::vector<plot_panel> panels;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const auto& cell = cells[i];
    if (i == 0 || cell.what.failure != cells[i - 1].what.failure)
      panels.push_back({fmt::format("{} peers on {}, failure {}", what.peers,
                                    kernels::to_string(what.grid), cell.what.failure),
                        {}});
    const auto& all = actors::averaging_strategies().all();
    const auto colour = static_cast<std::size_t>(
        std::find_if(all.begin(), all.end(),
                     [&](const auto& each) { return &each == cell.what.strategy; }) -
        all.begin());
    panels.back().curves.push_back(
        {name_of(cell), mean_curve(cell.figures, &averaging_curve::distortion), false, colour});
    if (!cell.figures.theory.empty())
      panels.back().curves.push_back(
          {name_of(cell) + ", theory", cell.figures.theory, true, colour});
  }
  return averaging_svg(panels, 1e-12);
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
  out["assignment"] = scenarios::name_of(what.assignment);
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

json as_json(const scenarios::judged_expectation& e) {
  return {{"strategy", e.wanted.strategy},
          {"failure", e.wanted.failure},
          {"below", e.wanted.below},
          {"expected", e.rounds},
          {"within", e.within},
          {"measured", e.measured ? json(*e.measured) : json()},
          {"met", e.met()}};
}

} // namespace shoal::tools
