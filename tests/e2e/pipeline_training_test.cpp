// The training method 'pipeline': hosts hold the stages of a model, and trainers stream samples
// from the data shard. Everything else is as in any training run.
#include "actors/pipeline/observations.hpp"
#include "actors/pipeline/probes.hpp"
#include "kernels/base/rng.hpp"
#include "scenarios/record/verify_data.hpp"
#include "scenarios/schema/load.hpp"
#include "tests/e2e/support/program.hpp"
#include "tests/e2e/support/swarm.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <utility>

using namespace shoal;
using namespace shoal::e2e;

namespace {

/// Sentences of a few words, in a drawn order.
std::string write_text(const scratch_folder& folder) {
  constexpr const char* words[] = {"the ", "shoal ", "swims ", "through ", "a ", "cold ", "sea. "};
  auto random = stream(5, "text");
  std::string out;
  for (int i = 0; i < 4000; ++i) out += words[random.below(7)];
  const auto path = folder / "text.txt";
  spill(path, out);
  return path.string();
}

struct staged_swarm {
  std::string world = "sim";
  unsigned stages = 4, holders = 8, trainers = 2, epochs = 12, batch = 24;
  std::string workload = "{kind: timing, parameters: 40000, sample_size: 64B}";
  std::string optimizer = "{kind: sgd, learning_rate: 0.1}";
  std::string training;      ///< further options, ', key: value'
  std::string churn;         ///< ', churn: {...}' for the holders
  std::string trainer_churn; ///< the same for the trainers
  std::string files, data, faults;
  std::uint64_t seed = 1;

  std::string yaml() const {
    return fmt::format(
        "world: {}\nseed: {}\nstop_time: 2h\n"
        "network: {{default_delay: 20ms, default_jitter: 2ms, detection_time: 2s}}\n"
        "devices:\n  small: {{samples_per_second: 40, jitter: 10%, step_time: 2ms}}\n"
        "peers:\n"
        "  holder: {{count: {}, role: stage, up: 50Mbit, down: 50Mbit, device: small{}}}\n"
        "  trainer: {{count: {}, up: 50Mbit, down: 50Mbit, device: small{}}}\n"
        "data: {{prefetch_samples: 32{}{}}}\n"
        "workload: {}\n"
        "training: {{method: pipeline, stages: {}, target_batch: {}, micro_batch: 4, epochs: {}, "
        "max_refresh: 4s, optimizer: {}{}}}\n"
        "averaging: {{matchmaking_time: 2s, round_timeout: 20s, sender_timeout: 5s}}\n{}",
        world, seed, holders, churn, trainers, trainer_churn,
        files.empty() ? "" : fmt::format(", files: ['{}'], holdout: 10%", files), data, workload,
        stages, batch, epochs, optimizer, training,
        faults.empty() ? "" : "faults:\n  - " + faults + "\n");
  }
};

struct staged_run {
  finished_run run;
  std::uint64_t moves = 0, failures = 0;
  /// Samples that counted in all stages, and in some of them, by the trainers' word.
  std::uint64_t used = 0;
};

staged_run run_staged(const staged_swarm& what, scenarios::runner_options options = {}) {
  staged_run out;
  options.on_observation = [&](const actors::host&, const actors::observation& seen) {
    if (actors::holds_alternative<actors::stage_left>(seen)) ++out.moves;
    if (actors::holds_alternative<actors::stage_task_failed>(seen)) ++out.failures;
    if (const auto* batch = actors::get_if<actors::batch_stepped>(&seen))
      for (const auto& range : batch->samples) out.used += range.count;
  };
  out.run = run_yaml(what.yaml(), what.epochs, std::move(options));
  INFO(out.run.text(what.yaml()));
  CHECK(out.run.errors.empty());
  return out;
}

const std::string often = ", churn: {session: {distribution: exponential, mean: 60s}, gap: "
                          "{distribution: exponential, mean: 6s}}";

} // namespace

TEST_CASE("a training pipeline streams its samples and commits each of them once") {
  const scratch_folder folder;
  const staged_swarm what;
  scenarios::runner_options options;
  options.out = (folder / "run").string();
  const auto [run, moves, failures, used] = run_staged(what, options);
  CHECK(run.summary().epochs == what.epochs);
  CHECK(run.summary().samples == what.epochs * what.batch);
  CHECK(used == what.epochs * what.batch);
  CHECK(failures == 0);
  CHECK(rule(run.summary(), "samples_counted").checked > 0);
  const auto verified = scenarios::verify_data((folder / "run").string());
  CHECK(verified.ok());
  CHECK(verified.committed == what.epochs * what.batch);
  CHECK(verified.partial == 0);
}

TEST_CASE("a training pipeline whose hosts come and go loses no sample, and hosts change stage") {
  staged_swarm what;
  what.holders = 16;
  what.epochs = 60;
  what.churn = often;
  what.training = ", rebalance_every: 20s, activations: blockwise8";
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    what.seed = seed;
    const auto [run, moves, failures, used] = run_staged(what);
    CHECK(run.summary().peers.left > 5);
    CHECK(failures > 0);
    CHECK(used == run.summary().samples);
    CHECK(used >= what.epochs * what.batch * 95 / 100);
  }
}

TEST_CASE("trainers of a pipeline may come and go") {
  staged_swarm what;
  what.trainers = 4;
  what.epochs = 30;
  what.trainer_churn = often;
  const auto [run, moves, failures, used] = run_staged(what);
  CHECK(run.summary().peers.left > 2);
  CHECK(used >= what.epochs * what.batch / 2);
}

TEST_CASE(
    "a trainer that loses the lease of samples in its batch neither commits nor repeats them") {
  staged_swarm what;
  what.data = ", lease_time: 2s";
  what.training = ", min_refresh: 2s";
  what.batch = 64;
  scenarios::runner_options options;
  const auto [run, moves, failures, used] = run_staged(what, options);
  CHECK(used < what.epochs * what.batch); // some leases were lost
  CHECK(run.summary().samples == used);
}

TEST_CASE("a host of a stage may die at each probe of the pipeline") {
  for (const auto point : actors::pipeline_probes::all) {
    CAPTURE(point);
    staged_swarm what;
    what.faults = fmt::format(
        "{{restart: process, select: 'holder-*', on: {}, nth: 40, downtime: 4s}}", point);
    const auto [run, moves, failures, used] = run_staged(what);
    CHECK(run.summary().faults_struck == 1);
    CHECK(used == what.epochs * what.batch);
  }
}

TEST_CASE("a pipeline trains over real sockets as in virtual time") {
  staged_swarm what;
  what.world = "loopback";
  what.epochs = 5;
  const auto [run, moves, failures, used] = run_staged(what);
  CHECK(used == what.epochs * what.batch);
}

#if SHOAL_WITH_LEARN
TEST_CASE("a pipeline of hosts that come and go learns text as one machine does") {
  const scratch_folder folder;
  staged_swarm what;
  what.files = write_text(folder);
  what.workload = "{kind: transformer, layers: 4, heads: 2, dim: 8, context: 12}";
  what.optimizer = "{kind: adamw, learning_rate: 0.02, beta2: 0.95}";
  what.holders = 12;
  what.epochs = 40;
  what.churn = often;
  auto loaded = scenarios::load_text(what.yaml(), "pipeline.yaml");
  REQUIRE(loaded.value);
  scenarios::runner_options options;
  options.out = (folder / "run").string();
  auto prepared = scenarios::runner::prepare(std::move(*loaded.value), options);
  REQUIRE_MESSAGE(prepared.ok(), prepared.error());
  const auto outcome = (*prepared)->run();
  REQUIRE_MESSAGE(outcome.ok(), outcome.error());
  CHECK(outcome->summary.epochs == what.epochs);
  CHECK(outcome->summary.peers.left > 5);
  const auto& loss = outcome->summary.loss;
  REQUIRE(loss.first);
  REQUIRE(loss.final);
  REQUIRE(loss.baseline);
  CHECK(*loss.final < 0.7 * *loss.first);
  CHECK(*loss.final == doctest::Approx(*loss.baseline).epsilon(0.03));
  CHECK(std::filesystem::exists(folder / "run" / "final.ckpt"));
}
#endif
