// shoal bench rebalancing: policies of rebalancing a pipeline on churn traces.
// shoal bench square-cube: utilizations of a pipeline by width and round trip.
#include "kernels/base/result.hpp"
#include "netem/trace_formats.hpp"
#include "scenarios/bench/rebalancing_on_trace.hpp"
#include "scenarios/bench/square_cube.hpp"
#include "tools/arguments.hpp"
#include "tools/commands.hpp"
#include "tools/exit_codes.hpp"
#include "tools/spread.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace shoal::tools {

namespace {

using namespace std::chrono_literals;
using scenarios::pipeline_layer;
using scenarios::stage_joins;

struct rebalancing_arguments {
  std::vector<std::string> traces;
  std::vector<std::uint32_t> stages{3, 4, 8};
  std::uint64_t seeds = 50;
};

const std::array<std::pair<const char*, scenarios::rebalancing_policy>, 6> policies{{
    {"none, random joins", {stage_joins::random, {}}},
    {"none, greedy joins", {stage_joins::greedy, {}}},
    {"300 s, random joins", {stage_joins::random, 300s}},
    {"300 s, greedy joins", {stage_joins::greedy, 300s}},
    {"60 s, random joins", {stage_joins::random, 60s}},
    {"60 s, greedy joins", {stage_joins::greedy, 60s}},
}};

struct named_trace {
  std::string name;
  std::vector<netem::trace> by_seed;
};

/// `given` is FILE or FILE=UNIT. Errors: a file that cannot be read, or a trace that loops.
result<named_trace> read_trace(const std::string& given, std::uint64_t seeds) {
  const auto equals = given.rfind('=');
  const auto file = given.substr(0, equals);
  named_trace out{std::filesystem::path(file).stem().string(), {}};
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    netem::trace_options how;
    how.seed = seed;
    if (equals != std::string::npos) how.unit = given.substr(equals + 1);
    auto read = netem::load_traces(std::array{file}, how);
    if (!read) return failure{read.error()};
    if (read->loop() != duration{}) return failure{fmt::format("{}: error: the trace loops", file)};
    out.by_seed.push_back(std::move(*read));
  }
  return out;
}

int bench_rebalancing(const rebalancing_arguments& a) {
  std::vector<named_trace> traces;
  for (const auto& given : a.traces) {
    auto read = read_trace(given, a.seeds);
    if (!read) {
      fmt::print(stderr, "{}\n", read.error());
      return exit_bad_input;
    }
    traces.push_back(std::move(*read));
  }
  fmt::print("| trace | stages |");
  for (const auto& [name, how] : policies) fmt::print(" {} |", name);
  fmt::print("\n|---|---|");
  for (std::size_t i = 0; i < policies.size(); ++i) fmt::print("---|");
  fmt::print("\n");
  for (const auto& trace : traces)
    for (const auto stages : a.stages) {
      fmt::print("| {} | {} |", trace.name, stages);
      for (const auto& [name, how] : policies) {
        std::vector<double> shares;
        for (std::uint64_t seed = 1; seed <= a.seeds; ++seed)
          shares.push_back(
              scenarios::play_rebalancing(trace.by_seed[seed - 1], stages, how, seed).share());
        const auto seen = of_values(shares);
        fmt::print(" {:.1f} ± {:.1f} % |", 100 * seen.mean, 100 * seen.deviation);
      }
      fmt::print("\n");
    }
  return exit_ok;
}

struct square_cube_arguments {
  double rate_mbit = 500, sequence = 512;
  std::vector<double> measured{18.0, 32.1, 82.1, 89.5};
  std::vector<double> round_trips{10, 50, 100, 200};
};

int bench_square_cube(const square_cube_arguments& a) {
  const std::array<std::pair<const char*, pipeline_layer>, 4> rows{{
      {"width 768", {768, 1, 16, a.sequence, a.rate_mbit * 1e6}},
      {"width 4096", {4096, 1, 16, a.sequence, a.rate_mbit * 1e6}},
      {"width 12288", {12288, 1, 16, a.sequence, a.rate_mbit * 1e6}},
      {"width 4096, 3 shared layers, 8 bits", {4096, 3, 8, a.sequence, a.rate_mbit * 1e6}},
  }};
  if (a.measured.size() != rows.size())
    return fail(fmt::format("--measured: {} numbers, and there are {} layers", a.measured.size(),
                            rows.size()));
  fmt::print("| layer | transfer | computing | no latency |");
  for (const double trip : a.round_trips) fmt::print(" {} ms |", trip);
  fmt::print("\n|---|---|---|---|");
  for (std::size_t i = 0; i < a.round_trips.size(); ++i) fmt::print("---|");
  fmt::print("\n");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto& [name, layer] = rows[i];
    const double compute = scenarios::calibrated_seconds(layer, a.measured[i] / 100);
    fmt::print("| {} | {:.1f} ms | {:.1f} ms, {:.2f} Tflop/s | {:.1f} % |", name,
               1e3 * scenarios::transfer_seconds(layer), 1e3 * compute,
               1e-12 * scenarios::forward_flops(layer) / compute, a.measured[i]);
    for (const double trip : a.round_trips)
      fmt::print(" {:.1f} % |", 100 * scenarios::utilization_at(layer, compute, trip / 1e3));
    fmt::print("\n");
  }
  return exit_ok;
}

} // namespace

void add_bench_pipeline(CLI::App& bench, action& chosen) {
  auto* command = bench.add_subcommand(
      "rebalancing", "plays churn traces against policies that rebalance a pipeline's stages");
  auto a = std::make_shared<rebalancing_arguments>();
  command
      ->add_option("TRACE", a->traces,
                   "one or several churn traces; FILE=UNIT for times in ms, s, min or h")
      ->required();
  command->add_option("--stages", a->stages, "numbers of stages")
      ->delimiter(',')
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  command->add_option("--seeds", a->seeds, "runs of each cell")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  command->callback([a, &chosen] { chosen = [a] { return bench_rebalancing(*a); }; });

  auto* law = bench.add_subcommand(
      "square-cube", "predicts how a round trip lowers the utilization of a pipeline's devices");
  auto b = std::make_shared<square_cube_arguments>();
  law->add_option("--rate", b->rate_mbit, "rate of each line, in Mbit/s")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  law->add_option("--sequence", b->sequence, "tokens of a micro-batch")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  law->add_option("--measured", b->measured,
                  "utilizations without latency, in percent, of the four layers")
      ->delimiter(',')
      ->check(CLI::Range(0.001, 99.999))
      ->capture_default_str();
  law->add_option("--round-trips", b->round_trips, "in ms")
      ->delimiter(',')
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  law->callback([b, &chosen] { chosen = [b] { return bench_square_cube(*b); }; });
}

} // namespace shoal::tools
