// shoal bench averaging: the speed at which strategies of averaging bring a swarm to its mean. The
// command does the same as a scenario with `averaging_study`.
#include "actors/averaging/aggregator.hpp"
#include "kernels/base/json_text.hpp"
#include "scenarios/bench/averaging_report.hpp"
#include "scenarios/observe/output_text.hpp"
#include "scenarios/observe/run_directory.hpp"
#include "scenarios/observe/summary.hpp"
#include "tools/arguments.hpp"
#include "tools/commands.hpp"
#include "tools/exit_codes.hpp"
#include "tools/interrupts.hpp"
#include "tools/outcome_files.hpp"
#include "tools/outcome_plot.hpp"
#include "tools/run_alone.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <optional>

namespace shoal::tools {

namespace {

using json = nlohmann::ordered_json;
using scenarios::averaging_study;
using scenarios::group_assignment;

struct bench_arguments {
  std::string grid, assignment, svg, out, delay = "50ms", rate = "100Mbit", failure = "0";
  std::uint64_t seed = 1;
  averaging_study study;
  bool json = false, force = false;
};

bool check_strategies(const bench_arguments& a) {
  std::vector<std::string> known;
  for (const auto& each : actors::averaging_strategies().all()) known.push_back(each.name);
  for (const auto& name : a.study.strategies)
    if (std::find(known.begin(), known.end(), name) == known.end())
      return unknown_word("--strategy", "strategy", name, known), false;
  return true;
}

bool check_aggregator(const bench_arguments& a) {
  if (actors::aggregators().find(a.study.aggregator) != nullptr) return true;
  std::vector<std::string> known;
  for (const auto& each : actors::aggregators().all()) known.push_back(each.name);
  unknown_word("--aggregator", "aggregator", a.study.aggregator, known);
  return false;
}

/// Reads quantities as scenarios write them. Prints the error, if there is one.
bool read_quantities(bench_arguments& a) {
  const auto wrong = [](const char* option, const std::string& why) {
    return fmt::print(stderr, "error: {}: {}\n", option, why), false;
  };
  const auto delay = parse_duration(a.delay);
  if (!delay) return wrong("--delay", delay.error());
  const auto rate = parse_rate(a.rate);
  if (!rate) return wrong("--rate", rate.error());
  if (rate->bits_per_second <= 0) return wrong("--rate", "has to be more than 0");
  const auto failure = parse_fraction(a.failure);
  if (!failure) return wrong("--failure", failure.error());
  if (*failure > 0.999) return wrong("--failure", "has to be at most 99.9%");
  a.study.delay = *delay;
  a.study.rate = *rate;
  a.study.failures.front() = *failure;
  return true;
}

/// Fills the study from what is not yet in it. Prints the error, if there is one.
bool complete(bench_arguments& a) {
  constexpr std::uint64_t usual_peers = 1024;
  auto& study = a.study;
  if (!check_strategies(a) || !check_aggregator(a) || !read_quantities(a)) return false;
  if (a.grid.empty()) {
    if (study.peers == 0) study.peers = usual_peers;
    study.grid = kernels::square_grid(study.peers);
  } else {
    const auto parsed = kernels::parse_grid(a.grid);
    if (!parsed) return fmt::print(stderr, "error: --grid: {}\n", parsed.error()), false;
    study.grid = *parsed;
    if (study.peers == 0) study.peers = study.grid.cells();
    if (study.peers > study.grid.cells())
      return fmt::print(stderr, "error: --grid: {} peers do not fit in the {} cells of {}\n",
                        study.peers, study.grid.cells(), a.grid),
             false;
  }
  if (study.peers > scenarios::most_study_peers)
    return fmt::print(stderr, "error: {} peers: at most {} fit\n", study.peers,
                      scenarios::most_study_peers),
           false;
  if (study.grid.cells() > scenarios::most_study_cells)
    return fmt::print(stderr, "error: --grid: {} cells: at most {}\n", study.grid.cells(),
                      scenarios::most_study_cells),
           false;
  const bool few = study.peers <= scenarios::most_study_peers_with_dht;
  study.groups = a.assignment == "dht" || (a.assignment.empty() && few) ? group_assignment::dht
                                                                        : group_assignment::given;
  return true;
}

json bench_json(const averaging_study& study, std::uint64_t seed,
                const scenarios::study_figures& figures) {
  auto out = head_json(study, seed);
  out["failure"] = study.failures.front();
  out["strategies"] = json::array();
  for (const auto& cell : figures.cells) out["strategies"].push_back(as_json(cell));
  out["peak_rss_bytes"] = scenarios::peak_rss_bytes();
  return out;
}

/// The command that repeats the measurement.
std::string command_of(const bench_arguments& a) {
  return fmt::format(
      "shoal bench averaging --strategy {} --peers {} --grid {} --group {} --failure "
      "{} --rounds {} --at-least {} --aggregator {} --vector {} --restarts {} --seed "
      "{} --groups {} --delay {} --rate {}",
      fmt::join(a.study.strategies, ","), a.study.peers, kernels::to_string(a.study.grid),
      a.study.group, a.failure, a.study.rounds, a.study.at_least, a.study.aggregator,
      a.study.vector, a.study.restarts, a.seed,
      a.study.groups == group_assignment::dht ? "dht" : "given", a.delay, a.rate);
}

int bench_averaging(bench_arguments a) {
  if (!complete(a)) return exit_usage;
  // The file is opened now, not after minutes of computing.
  if (!a.svg.empty())
    if (const std::ofstream probe(a.svg, std::ios::app); !probe)
      return fail(fmt::format("{}: cannot be written: {}", a.svg, std::strerror(errno)));
  std::optional<scenarios::run_directory> directory;
  if (!a.out.empty()) {
    auto made = scenarios::run_directory::create(a.out, a.force);
    if (!made) return fail(made.error());
    directory = std::move(*made);
  }
  catch_interrupts();
  std::string printed;
  const auto figures = [&] {
    const terminal_hooks terminal(a.json, false);
    auto found = run_with_tables(a.study, a.seed, terminal.hooks());
    printed = terminal.printed();
    return found;
  }();
  if (!figures) return fail(figures.error(), exit_run_failed);
  if (directory) {
    for (const auto& cell : figures->cells) printed += "\n" + curves_text(cell);
    if (auto kept = keep_outcome(*directory, "Averaging on its own",
                                 outcome_of("bench averaging", a.study, a.seed, *figures), printed,
                                 command_of(a));
        !kept)
      return fail(kept.error(), exit_run_failed);
  }
  if (a.json) {
    fmt::print("{}\n", json_text(bench_json(a.study, a.seed, *figures), 2));
  } else {
    for (const auto& cell : figures->cells) fmt::print("\n{}", curves_text(cell));
    fmt::print("\n{} of memory at most\n", scenarios::bytes_text(scenarios::peak_rss_bytes()));
  }
  if (!a.svg.empty()) {
    std::ofstream out(a.svg);
    out << outcome_svg(curves_chart(a.study, figures->cells));
    out.close();
    if (!out)
      return fail(fmt::format("{}: cannot be written: {}", a.svg, std::strerror(errno)),
                  exit_run_failed);
    if (!a.json) fmt::print("curves: {}\n", a.svg);
  }
  if (directory && !a.json) fmt::print("Everything is in {}; report.html shows it\n", a.out);
  return figures->stopped ? exit_interrupted : exit_ok;
}

} // namespace

void add_bench(CLI::App& app, action& chosen) {
  auto* bench = app.add_subcommand("bench", "measures parts of Shoal on their own");
  bench->require_subcommand(1);
  add_bench_robust(*bench, chosen);
  add_bench_pipeline(*bench, chosen);
  auto* command = bench->add_subcommand(
      "averaging", "measures how fast strategies of averaging bring a swarm to its mean");
  auto a = std::make_shared<bench_arguments>();
  command
      ->add_option("--strategy", a->study.strategies,
                   fmt::format("one or several: {}", actors::averaging_strategies().names()))
      ->delimiter(',')
      ->take_all()
      ->capture_default_str();
  command->add_option("--peers", a->study.peers, "how many; default: a full grid")
      ->check(CLI::Range(2.0, static_cast<double>(scenarios::most_study_peers)));
  command->add_option(
      "--grid", a->grid,
      "grid of moshpit, like 32x32 or 8x8x8; default: the smallest square that holds all peers");
  command->add_option("--group", a->study.group, "size of random groups")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command
      ->add_option("--failure", a->failure, "probability that a peer is absent in a round, like 5%")
      ->capture_default_str();
  command->add_option("--rounds", a->study.rounds, "the largest number of rounds")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command
      ->add_option("--at-least", a->study.at_least,
                   "the smallest number of rounds, even if the distortion is small")
      ->check(CLI::NonNegativeNumber);
  command
      ->add_option("--aggregator", a->study.aggregator,
                   fmt::format("how reducers of groups combine contributions: {}",
                               actors::aggregators().names()))
      ->capture_default_str();
  command->add_option("--vector", a->study.vector, "values of each peer")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command
      ->add_option("--restarts", a->study.restarts,
                   "repetitions with other values, places and failures")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_option("--seed", a->seed, "seed of all random draws")->capture_default_str();
  command
      ->add_option(
          "--groups", a->assignment,
          "'dht': members find each other in it; 'given': groups are told; default: dht up to "
          "16384 peers")
      ->check(CLI::IsMember({"dht", "given"}));
  command->add_option("--delay", a->delay, "between two peers, one way, like 50ms")
      ->capture_default_str();
  command->add_option("--rate", a->rate, "rate of each line, like 100Mbit")->capture_default_str();
  command->add_option("--svg", a->svg, "draw the curves into this file");
  command
      ->add_option("-o,--out", a->out,
                   "keep the figures, their curves and a page in this directory")
      ->type_name("DIR");
  command->add_flag("--force", a->force, "replace the files of an earlier measurement in --out");
  command->add_flag("--json", a->json, "print all figures for programs");
  command->callback([a, &chosen] { chosen = [a] { return bench_averaging(*a); }; });
}

} // namespace shoal::tools
