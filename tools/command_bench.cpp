// shoal bench averaging: how fast strategies of averaging bring a swarm to its mean.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <optional>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "scenarios/bench/averaging.hpp"
#include "scenarios/observe/summary.hpp"
#include "scenarios/observe/text.hpp"
#include "tools/arguments.hpp"
#include "tools/averaging_plot.hpp"
#include "tools/commands.hpp"
#include "tools/exit_codes.hpp"
#include "tools/interrupts.hpp"
#include "tools/terminal.hpp"

namespace shoal::tools {

namespace {

using actors::averaging_strategy;
using json = nlohmann::ordered_json;
using scenarios::averaging_bench;
using scenarios::averaging_figures;

constexpr double levels[] = {1e-3, 1e-6, 1e-9};
constexpr std::size_t most_with_dht = 16'384;

struct bench_arguments {
  std::vector<std::string> strategies{"moshpit"};
  std::string grid, assignment, svg;
  std::size_t peers = 0;
  unsigned delay_ms = 50;
  double rate_mbit = 100;
  averaging_bench what;
  bool json = false;
};

std::optional<averaging_strategy> strategy_named(const std::string& word) {
  for (std::size_t i = 0; i < actors::averaging_strategy_names.size(); ++i)
    if (word == actors::averaging_strategy_names[i]) return static_cast<averaging_strategy>(i);
  unknown_word("--strategy", "strategy", word, {actors::averaging_strategy_names.begin(), actors::averaging_strategy_names.end()});
  return std::nullopt;
}

/// Of the restarts that are long enough; those that ended stay at their last value.
std::vector<double> mean_curve(const averaging_figures& from, std::vector<double> scenarios::averaging_curve::*what) {
  std::size_t longest = 0;
  for (const auto& r : from.restarts) longest = std::max(longest, (r.*what).size());
  std::vector<double> out(longest);
  for (const auto& r : from.restarts)
    for (std::size_t t = 0; t < longest; ++t)
      out[t] += (r.*what)[std::min(t, (r.*what).size() - 1)] / static_cast<double>(from.restarts.size());
  return out;
}

/// Means over the restarts that got there.
std::optional<double> mean_at(const averaging_figures& from, double level, std::vector<double> scenarios::averaging_curve::*what) {
  double sum = 0;
  std::size_t count = 0;
  for (const auto& r : from.restarts)
    if (const auto t = r.rounds_to(level)) {
      sum += (r.*what)[*t];
      ++count;
    }
  return count > 0 ? std::optional<double>(sum / static_cast<double>(count)) : std::nullopt;
}

json as_json(const averaging_bench& what, const averaging_figures& f) {
  json out;
  out["strategy"] = actors::to_string(what.strategy);
  out["assignment"] = what.assignment == scenarios::group_assignment::dht ? "dht" : "given";
  out["restarts"] = f.restarts.size();
  for (double level : {1e-3, 1e-4, 1e-6, 1e-9}) {
    json& at = out["to"][fmt::format("{:.0e}", level)];
    const auto seconds = mean_at(f, level, &scenarios::averaging_curve::seconds);
    const auto bytes = mean_at(f, level, &scenarios::averaging_curve::bytes);
    at["reached"] = f.reached(level);
    at["rounds"] = f.mean_rounds_to(level, what.rounds);
    at["virtual_seconds"] = seconds ? json(*seconds) : json();
    at["bytes_per_peer"] = bytes ? json(*bytes) : json();
  }
  out["distortion"] = mean_curve(f, &scenarios::averaging_curve::distortion);
  if (what.strategy == averaging_strategy::all_reduce)
    out["expected_rounds"] = kernels::all_reduce_rounds(static_cast<double>(what.peers), what.failure, what.rounds);
  out["theory"] = f.theory.empty() ? json() : json(f.theory);
  out["squared_distance_from_mean"] = mean_curve(f, &scenarios::averaging_curve::from_mean).back();
  out["peer_rounds"] = {{"ok", f.ok}, {"partial", f.partial}, {"failed", f.failed}};
  out["messages"] = f.messages;
  out["misbehaved"] = f.misbehaved;
  out["bypassed"] = f.bypassed;
  out["build_seconds"] = f.build_seconds;
  out["wall_seconds"] = f.wall_seconds;
  return out;
}

void print(const averaging_bench& what, const averaging_figures& f) {
  const auto name = actors::to_string(what.strategy);
  const auto final_distance = mean_curve(f, &scenarios::averaging_curve::from_mean).back();
  for (double level : levels) {
    const auto reached = f.reached(level);
    const auto seconds = mean_at(f, level, &scenarios::averaging_curve::seconds);
    const auto bytes = mean_at(f, level, &scenarios::averaging_curve::bytes);
    const bool first = level == levels[0];
    fmt::print("{:<17} {:>6.0e}  {:>8.2f}  {:>11}  {:>11}  {:>9}  {}\n", first ? name : "", level, f.mean_rounds_to(level, what.rounds),
               seconds ? fmt::format("{:.2f}", *seconds) : "-", bytes ? scenarios::bytes_text(static_cast<std::uint64_t>(*bytes)) : "-", fmt::format("{}/{}", reached, f.restarts.size()),
               first ? fmt::format("{:.1e}", final_distance) : "");
  }
}

void print_curve(const averaging_figures& f) {
  const auto measured = mean_curve(f, &scenarios::averaging_curve::distortion);
  for (std::size_t t = 0; t < measured.size() && t <= 12; ++t)
    fmt::print("  round {:>2}   measured {:>9.3e}{}\n", t, measured[t],
               t < f.theory.size() ? fmt::format("   theory {:>9.3e}", f.theory[t]) : "");
  if (measured.size() > 13) fmt::print("  ... {} more; --json has all\n", measured.size() - 13);
}

int bench_averaging(bench_arguments a) {
  std::vector<averaging_strategy> strategies;
  for (const auto& word : a.strategies) {
    const auto found = strategy_named(word);
    if (!found) return exit_usage;
    strategies.push_back(*found);
  }
  auto& what = a.what;
  if (a.grid.empty()) {
    // The smallest square grid that holds everybody.
    const auto peers = a.peers == 0 ? 1024 : a.peers;
    what.grid.dimensions = 2;
    what.grid.side = std::max<std::uint32_t>(2, static_cast<std::uint32_t>(std::ceil(std::sqrt(static_cast<double>(peers)) - 1e-9)));
  } else {
    const auto parsed = kernels::parse_grid(a.grid);
    if (!parsed) return fmt::print(stderr, "error: --grid: {}\n", parsed.error()), exit_usage;
    what.grid = *parsed;
  }
  what.peers = a.peers > 0 ? a.peers : a.grid.empty() ? 1024 : what.grid.cells();
  if (what.peers > 4'194'304) return fmt::print(stderr, "error: {} peers: at most 4194304 fit\n", what.peers), exit_usage;
  if (what.grid.cells() > 16'777'216) return fmt::print(stderr, "error: --grid: {} cells: at most 16777216\n", what.grid.cells()), exit_usage;
  what.delay = std::chrono::milliseconds(a.delay_ms);
  what.rate = a.rate_mbit * 1e6;
  what.assignment = what.peers <= most_with_dht ? scenarios::group_assignment::dht : scenarios::group_assignment::given;
  if (a.assignment == "given") what.assignment = scenarios::group_assignment::given;
  if (a.assignment == "dht") what.assignment = scenarios::group_assignment::dht;

  // Not after minutes of computing.
  if (!a.svg.empty())
    if (const std::ofstream probe(a.svg, std::ios::app); !probe)
      return fmt::print(stderr, "error: {}: cannot be written: {}\n", a.svg, std::strerror(errno)), exit_bad_input;
  catch_interrupts();
  const auto columns = a.json ? std::nullopt : terminal_columns(fileno(stderr));
  what.progress = [&](const std::string& doing) {
    if (columns) fmt::print(stderr, "\r\033[K{}", one_line(doing, *columns - 1));
    return !interrupted();
  };
  json all;
  all["peers"] = what.peers;
  all["grid"] = kernels::to_string(what.grid);
  all["failure"] = what.failure;
  all["vector"] = what.vector;
  all["seed"] = what.seed;
  all["rounds_at_most"] = what.rounds;
  all["strategies"] = json::array();
  std::vector<plotted_curve> curves;
  if (!a.json) {
    fmt::print("{} peers on {}, vectors of {}, {} restart{}, each away in a round with probability {}; {} ms one way, {:g} Mbit/s\n",
               what.peers, kernels::to_string(what.grid), what.vector, what.restarts, what.restarts == 1 ? "" : "s", what.failure, a.delay_ms, a.rate_mbit);
    fmt::print("groups {}\n\n", what.assignment == scenarios::group_assignment::dht ? "find together in a DHT of all peers"
                                                                                    : "are given, not found in the DHT; all else is the same");
    fmt::print("{:<17} {:>6}  {:>8}  {:>11}  {:>11}  {:>9}  {}\n", "strategy", "below", "rounds", "virtual s", "sent a peer", "reached", "|mean - true|^2");
  }
  std::vector<averaging_figures> done;
  bool stopped = false;
  for (std::size_t i = 0; i < strategies.size() && !stopped; ++i) {
    what.strategy = strategies[i];
    auto figures = scenarios::run_averaging_bench(what);
    if (columns) fmt::print(stderr, "\r\033[K");
    if (!figures) return fmt::print(stderr, "error: {}\n", figures.error()), exit_run_failed;
    stopped = figures->stopped;
    if (figures->restarts.empty()) break;
    const std::string name(actors::to_string(what.strategy));
    curves.push_back({name, mean_curve(*figures, &scenarios::averaging_curve::distortion), false, i});
    if (!figures->theory.empty()) curves.push_back({name + ", theory", figures->theory, true, i});
    all["strategies"].push_back(as_json(what, *figures));
    if (!a.json) print(what, *figures);
    done.push_back(std::move(*figures));
  }
  all["peak_rss_bytes"] = scenarios::peak_rss_bytes();
  if (a.json) {
    fmt::print("{}\n", all.dump(2));
  } else {
    for (std::size_t i = 0; i < done.size(); ++i) {
      const auto& f = done[i];
      fmt::print("\n{}, distortion of the initial one, mean of {}:\n", actors::to_string(strategies[i]), f.restarts.size());
      print_curve(f);
      fmt::print("  {} messages, {:.1f} s, of which {:.1f} s to build the swarm{}\n", f.messages, f.wall_seconds, f.build_seconds,
                 f.misbehaved + f.bypassed > 0 ? fmt::format("; {} misbehaved, {} bypassed the network", f.misbehaved, f.bypassed) : "");
    }
    fmt::print("\n{} of memory at most\n", scenarios::bytes_text(scenarios::peak_rss_bytes()));
  }
  if (!a.svg.empty()) {
    std::ofstream out(a.svg);
    out << averaging_svg(fmt::format("{} peers on {}, failure {}", what.peers, kernels::to_string(what.grid), what.failure), curves, 1e-12);
    out.close();
    if (!out) return fmt::print(stderr, "error: {}: cannot be written: {}\n", a.svg, std::strerror(errno)), exit_run_failed;
    if (!a.json) fmt::print("curves: {}\n", a.svg);
  }
  return stopped ? exit_interrupted : exit_ok;
}

}  // namespace

void add_bench(CLI::App& app, action& chosen) {
  auto* bench = app.add_subcommand("bench", "measures parts of Shoal on their own");
  bench->require_subcommand(1);
  auto* command = bench->add_subcommand("averaging", "how fast strategies of averaging bring a swarm to its mean");
  auto a = std::make_shared<bench_arguments>();
  command->add_option("--strategy", a->strategies, fmt::format("one or several: {}", fmt::join(actors::averaging_strategy_names, ", ")))
      ->delimiter(',')->take_all()->capture_default_str();
  command->add_option("--peers", a->peers, "how many; default: a full grid");
  command->add_option("--grid", a->grid, "of moshpit, like 32x32 or 8x8x8; default: the smallest square that holds all");
  command->add_option("--group", a->what.group_size, "size of random groups")->check(CLI::PositiveNumber)->capture_default_str();
  command->add_option("--failure", a->what.failure, "probability that a peer is away in a round")->check(CLI::Range(0.0, 0.999))->capture_default_str();
  command->add_option("--rounds", a->what.rounds, "at most so many")->check(CLI::PositiveNumber)->capture_default_str();
  command->add_option("--at-least", a->what.at_least, "and so many even if the distortion is small");
  command->add_option("--vector", a->what.vector, "values of each peer")->check(CLI::PositiveNumber)->capture_default_str();
  command->add_option("--restarts", a->what.restarts, "repetitions with other values, places and failures")->check(CLI::PositiveNumber)->capture_default_str();
  command->add_option("--seed", a->what.seed, "of all that is drawn")->capture_default_str();
  command->add_option("--groups", a->assignment, "'dht': groups find together in it; 'given': they are told; default: dht up to 16384 peers")
      ->check(CLI::IsMember({"dht", "given"}));
  command->add_option("--delay", a->delay_ms, "between two peers, one way, in ms")->capture_default_str();
  command->add_option("--rate", a->rate_mbit, "of each line, in Mbit/s")->check(CLI::PositiveNumber)->capture_default_str();
  command->add_option("--svg", a->svg, "draw the curves into this file");
  command->add_flag("--json", a->json, "print all figures for programs");
  command->callback([a, &chosen] { chosen = [a] { return bench_averaging(*a); }; });
}

}  // namespace shoal::tools
