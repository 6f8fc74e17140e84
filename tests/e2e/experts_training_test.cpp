// The training method 'experts': hosts hold the experts of a mixture, and trainers stream samples
// from the data shard. Everything else is as in any training run.
#include "actors/experts/observations.hpp"
#include "actors/experts/probes.hpp"
#include "actors/pipeline/observations.hpp"
#include "scenarios/experts/expert_block_kind.hpp"
#include "scenarios/methods/experts.hpp"
#include "scenarios/record/explain_experts.hpp"
#include "scenarios/record/verify_data.hpp"
#include "scenarios/runner/runner.hpp"
#include "scenarios/schema/load.hpp"
#include "tests/e2e/support/program.hpp"
#include "tests/e2e/support/sentences.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <utility>

using namespace shoal;
using namespace shoal::e2e;

namespace {

struct expert_swarm {
  std::string world = "sim";
  unsigned holders = 4, trainers = 2, epochs = 10, batch = 16;
  std::string workload = "layers: 1, heads: 2, dim: 8, context: 8, grid: 3x3, chosen: 2";
  double learning_rate = 0.01;
  const char* share_every = "3s";
  std::string training;      ///< further options, ', key: value'
  std::string churn;         ///< ', churn: {...}' for the holders
  std::string trainer_churn; ///< the same for the trainers
  std::string data, faults, averaging;
  std::string liar; ///< the conduct of two more hosts of experts
  std::uint64_t seed = 1;

  std::string yaml(const scratch_folder& folder) const {
    return fmt::format(
        "world: {}\nseed: {}\nstop_time: 1h\n"
        "network: {{default_delay: 20ms, default_jitter: 2ms, detection_time: 2s}}\n"
        "devices:\n  small: {{samples_per_second: 40, jitter: 10%, step_time: 2ms}}\n"
        "peers:\n"
        "  holder: {{count: {}, role: expert, up: 50Mbit, down: 50Mbit, device: small{}}}\n{}"
        "  trainer: {{count: {}, up: 50Mbit, down: 50Mbit, device: small{}}}\n"
        "data: {{prefetch_samples: 32, files: ['{}'], holdout: 10%{}}}\n"
        "workload: {{kind: mixture, {}}}\n"
        "training: {{method: experts, target_batch: {}, micro_batch: 4, epochs: {}, "
        "max_refresh: 4s, copy_every: 4s, share_every: {}, answer_timeout: 2s, optimizer: {{kind: "
        "adamw, learning_rate: {}, beta2: 0.95}}{}}}\n{}{}",
        world, seed, holders, churn,
        liar.empty() ? ""
                     : fmt::format("  liar: {{count: 2, role: expert, up: 50Mbit, down: 50Mbit, "
                                   "device: small, conduct: {}}}\n",
                                   liar),
        trainers, trainer_churn, write_text(folder), data, workload, batch, epochs, share_every,
        learning_rate, training, averaging.empty() ? "" : "averaging: " + averaging + "\n",
        faults.empty() ? "" : "faults:\n  - " + faults + "\n");
  }
};

struct expert_run {
  scenarios::run_outcome outcome;
  /// Samples of steps, by the trainers' word, and how many of those lack an expert's gradient.
  std::uint64_t used = 0, partial = 0;
  std::uint64_t begun = 0, revived = 0, lost = 0, missing = 0;
  std::uint64_t false_copies = 0;        ///< that hosts refused
  std::map<std::string, unsigned> wrong; ///< answers that trainers refused, by group
  std::map<actors::peer_id, std::string> groups;
};

expert_run run_experts(const expert_swarm& what, const scratch_folder& folder) {
  expert_run out;
  scenarios::runner_options options;
  options.out = (folder / "run").string();
  options.on_observation = [&](const actors::host& on, const actors::observation& seen) {
    out.groups[on.id()] = on.name().substr(0, on.name().find('-'));
    if (const auto* step = actors::get_if<actors::batch_stepped>(&seen)) {
      for (const auto& range : step->samples) {
        out.used += range.count;
        out.partial += step->hops_included < step->hops_total ? range.count : 0;
      }
    } else if (const auto* held = actors::get_if<actors::expert_held>(&seen)) {
      ++(held->revived ? out.revived : out.begun);
    } else if (const auto* whole = actors::get_if<actors::model_gathered>(&seen)) {
      out.missing = whole->missing;
    } else if (const auto* lost = actors::get_if<actors::expert_call_lost>(&seen)) {
      ++out.lost;
      if (lost->why == actors::expert_refusal::too_large) ++out.wrong[out.groups[lost->host]];
    } else if (const auto* bad = actors::get_if<actors::misbehaved>(&seen)) {
      out.false_copies += bad->why.find("copy of an expert") != std::string::npos ? 1 : 0;
    }
  };
  auto loaded = scenarios::load_text(what.yaml(folder), "experts.yaml");
  REQUIRE_MESSAGE(loaded.value, what.yaml(folder));
  auto prepared = scenarios::runner::prepare(std::move(*loaded.value), options);
  REQUIRE_MESSAGE(prepared.ok(), prepared.error());
  auto outcome = (*prepared)->run();
  REQUIRE_MESSAGE(outcome.ok(), outcome.error());
  out.outcome = std::move(*outcome);
  for (const auto& [name, totals] : out.outcome.summary.invariants) {
    CAPTURE(name);
    CHECK(totals.violated == 0);
  }
  return out;
}

/// The final loss is below so many times the first one, and that of one machine. The ledger agrees
/// with the steps. Returns the final loss.
double check_learnt(const expert_run& run, const scratch_folder& folder, double of_first,
                    double of_baseline) {
  const auto& loss = run.outcome.summary.loss;
  REQUIRE(loss.first);
  REQUIRE(loss.final);
  REQUIRE(loss.baseline);
  CHECK(*loss.final < of_first * *loss.first);
  CHECK(*loss.final < of_baseline * *loss.baseline);
  CHECK(scenarios::verify_data((folder / "run").string()).ok());
  return *loss.final;
}

const std::string often = ", churn: {session: {distribution: exponential, mean: 60s}, gap: "
                          "{distribution: exponential, mean: 6s}}";

} // namespace

TEST_CASE("a swarm of experts streams its samples and commits each of them once") {
  const scratch_folder folder;
  const expert_swarm what;
  const auto run = run_experts(what, folder);
  CHECK(run.outcome.summary.epochs == what.epochs);
  CHECK(run.begun == 9);
  CHECK(run.revived == 0);
  CHECK(run.lost == 0);
  CHECK(run.partial == 0);
  CHECK(run.missing == 0);
  CHECK(run.used >= what.epochs * what.batch);
  CHECK(run.outcome.summary.samples == run.used);
  const auto verified = scenarios::verify_data((folder / "run").string());
  CHECK(verified.ok());
  CHECK(verified.committed == run.used);
  CHECK(verified.partial == 0);
  CHECK(std::filesystem::exists(folder / "run" / "final.ckpt"));
  // A line for each expert, and one of names.
  const auto table = slurp(folder / "run" / "experts.csv");
  CHECK(std::count(table.begin(), table.end(), '\n') == 10);
}

TEST_CASE("the time of a mixture's slowest calls is explained by queue and computing and network") {
  const scratch_folder folder;
  expert_swarm what;
  what.holders = 2; // long queues
  run_experts(what, folder);
  const auto why = scenarios::explain_experts((folder / "run").string());
  REQUIRE_MESSAGE(why.ok(), why.error());
  CHECK(why->steps >= what.epochs * what.batch / 4);
  CHECK(why->lost == 0);
  CHECK(why->look_ups + why->waiting <= why->lasted);
  CHECK(why->waiting > duration{});
  REQUIRE(why->slowest.size() == 5);
  for (const auto& step : why->slowest) {
    CHECK(step.trainer.starts_with("trainer-"));
    CHECK(step.host.starts_with("holder-"));
    CHECK(step.call <= why->slowest.front().call);
    // Two ways of 20 ms, with a jitter.
    const auto network = to_seconds(step.call - step.queued - step.computing);
    CHECK(network >= 0.03);
    CHECK(network <= 0.08);
  }
  CHECK(scenarios::to_text(*why).find("slowest call: expert 0.") != std::string::npos);
}

TEST_CASE("the memory of a host of experts is that of its experts and copies") {
  const scratch_folder folder;
  const expert_swarm what;
  const auto loaded = scenarios::load_text(what.yaml(folder), "experts.yaml");
  REQUIRE(loaded.value);
  const auto memory = scenarios::memory_of_experts(*loaded.value);
  CHECK(memory.experts == 9);
  CHECK(memory.hosts == 4);
  CHECK(memory.parameters == 24 * 8 * 8 + 25 * 8);
  CHECK(memory.expert == 3 * 4 * memory.parameters);    // with the two moments of adamw
  CHECK(memory.of_host == 3 * (1 + 2) * memory.expert); // three experts, and two copies of each
  CHECK(scenarios::memory_of_experts(scenarios::scenario{}).experts == 0);
}

TEST_CASE("a swarm of experts that come and go learns text and loses no sample") {
  expert_swarm what;
  what.holders = 8;
  what.epochs = 100;
  what.churn = often;
  for (std::uint64_t seed = 1; seed <= 2; ++seed) {
    const scratch_folder folder;
    what.seed = seed;
    const auto run = run_experts(what, folder);
    CHECK(run.outcome.summary.peers.left > 3);
    CHECK(run.revived > 2);
    CHECK(run.begun <= 12);
    check_learnt(run, folder, 0.6, 1.5);
  }
}

TEST_CASE("a switch gate sends each token to one expert and learns") {
  const scratch_folder folder;
  expert_swarm what;
  what.workload = "layers: 1, heads: 2, dim: 8, context: 8, grid: 3x3, chosen: 1, gate: switch";
  what.epochs = 100;
  const auto run = run_experts(what, folder);
  check_learnt(run, folder, 0.6, 1.5);
}

TEST_CASE("an expert block with other sizes than its registration says is refused") {
  auto kind = *scenarios::expert_blocks().find("feed_forward");
  kind.name = "test_block";
  kind.parameters = [](const kernels::transformer_config&) { return std::size_t{7}; };
  scenarios::expert_blocks().add(std::move(kind));
  const scratch_folder folder;
  expert_swarm what;
  what.workload += ", experts: test_block";
  auto loaded = scenarios::load_text(what.yaml(folder), "experts.yaml");
  REQUIRE(loaded.value);
  const auto prepared = scenarios::runner::prepare(std::move(*loaded.value), {});
  REQUIRE_FALSE(prepared.ok());
  CHECK(prepared.error().find("1736 parameters, but its registration says 8 and 7") !=
        std::string::npos);
}

TEST_CASE("trainers of experts may come and go") {
  const scratch_folder folder;
  expert_swarm what;
  what.trainers = 8;
  what.epochs = 300;
  what.trainer_churn = often;
  const auto run = run_experts(what, folder);
  CHECK(run.outcome.summary.peers.left > 2);
  CHECK(run.outcome.summary.epochs == what.epochs);
  CHECK(scenarios::verify_data((folder / "run").string()).ok());
}

TEST_CASE("trainers of experts may average their trunks in the rows of a grid") {
  const scratch_folder folder;
  expert_swarm what;
  what.trainers = 9;
  what.epochs = 200;
  what.trainer_churn = often;
  what.training = ", groups: grid";
  what.averaging = "{matchmaking_time: 2s}";
  const auto run = run_experts(what, folder);
  const auto& summary = run.outcome.summary;
  CHECK(summary.peers.left > 2);
  CHECK(summary.epochs == what.epochs);
  CHECK(summary.rounds.ok > 5);
  check_learnt(run, folder, 0.7, 4);

  // A trainer behind a NAT cannot reduce.
  what.trainer_churn += ", nat: cone";
  const auto refused = scenarios::load_text(what.yaml(folder), "experts.yaml");
  CHECK_FALSE(refused.value);
  REQUIRE(refused.errors.size() == 1);
  CHECK(refused.errors[0].message.find("behind a NAT") != std::string::npos);
}

TEST_CASE("trainers of experts never share their trunks with share_every 0") {
  const auto averaged = [](const char* share_every, const char* groups) {
    const scratch_folder folder;
    expert_swarm what;
    what.trainers = 4;
    what.epochs = 30;
    what.share_every = share_every;
    what.training = fmt::format(", groups: {}", groups);
    const auto run = run_experts(what, folder);
    CHECK(run.outcome.summary.epochs == what.epochs);
    CHECK(scenarios::verify_data((folder / "run").string()).ok());
    return run.outcome.summary.bytes_sent.averaging;
  };
  for (const auto* groups : {"pairs", "grid"}) {
    CAPTURE(groups);
    CHECK(averaged("0", groups) == 0);
    CHECK(averaged("3s", groups) > 0);
  }
}

TEST_CASE("a host of experts may die at each probe") {
  for (const auto point : actors::expert_probes::all) {
    CAPTURE(point);
    const scratch_folder folder;
    expert_swarm what;
    what.epochs = 30;
    // An expert is revived only after the death of a host.
    const bool revives = point == actors::expert_probes::revived;
    if (revives) {
      what.epochs = 120;
      what.faults = "{kill: machine, select: holder-1, at: 10s}\n  - ";
    }
    what.faults += fmt::format(
        "{{restart: process, select: 'holder-*', on: {}, nth: {}, downtime: 4s}}", point,
        revives                                       ? 1
        : point == actors::expert_probes::copies_sent ? 3
                                                      : 40);
    const auto run = run_experts(what, folder);
    CHECK(run.outcome.summary.faults_struck == (revives ? 2 : 1));
    CHECK(run.revived >= (revives ? 1 : 0));
    CHECK(run.outcome.summary.epochs == what.epochs);
    CHECK(scenarios::verify_data((folder / "run").string()).ok());
  }
}

TEST_CASE("trainers avoid hosts whose experts answer with far too large values") {
  expert_swarm what;
  what.holders = 6;
  what.epochs = 60;
  what.liar = "{kind: wrong_layers, strength: 1000}";
  const scratch_folder folder;
  const auto run = run_experts(what, folder);
  REQUIRE(run.wrong.contains("liar"));
  CHECK(run.wrong.size() == 1);
  const auto loss = check_learnt(run, folder, 0.7, 4);

  // Without the bound the wrong values reach the trunk.
  what.training = ", most_growth: 0";
  const scratch_folder other;
  const auto taken = run_experts(what, other);
  CHECK(taken.wrong.empty());
  CHECK_FALSE(taken.outcome.summary.loss.final.value_or(1e9) < 1.2 * loss);
}

TEST_CASE("false copies of experts are not kept if they are far too large") {
  expert_swarm what;
  what.holders = 6;
  what.epochs = 60;
  what.liar = "{kind: false_copies, strength: 1000}";
  what.faults = "{kill: machine, select: 'liar-*', mode: all, at: 12s}";
  const scratch_folder folder;
  const auto run = run_experts(what, folder);
  CHECK(run.false_copies > 0);
  CHECK(run.wrong.empty());
  check_learnt(run, folder, 0.7, 4);
}

TEST_CASE("a trainer of experts that loses the lease of its samples does not commit them") {
  const scratch_folder folder;
  expert_swarm what;
  what.data = ", lease_time: 2s";
  what.training = ", min_refresh: 2s";
  const auto run = run_experts(what, folder);
  CHECK(run.outcome.summary.samples == run.used);
  CHECK(scenarios::verify_data((folder / "run").string()).ok());
}

TEST_CASE("latency costs experts little and stages most of their speed") {
  const auto figures_of = [](const std::string& file, const std::string& section,
                             const std::string& delay, const std::string& steps) {
    const auto run =
        run_program({"run", "scenarios/dmoe/" + file, "--json", "-q", "--set",
                     section + ".delay=" + delay, "--set", section + ".steps=" + steps});
    REQUIRE_MESSAGE(run.exit == 0, run.err);
    return nlohmann::json::parse(run.out);
  };
  const auto steps_a_second = [&](const std::string& delay) {
    const auto figures = figures_of("throughput.yaml", "experts", delay, "20");
    CHECK(figures.at("steps") == 20 * 64);
    CHECK(figures.at("rows_unanswered") == 0);
    return 20 * 64 / figures.at("virtual_seconds").get<double>();
  };
  const auto samples_a_second = [&](const std::string& delay) {
    return figures_of("model-parallel.yaml", "pipeline", delay, "2")
        .at("samples_per_second")
        .get<double>();
  };
  CHECK(steps_a_second("100ms") > 0.7 * steps_a_second("0ms"));
  CHECK(samples_a_second("100ms") < 0.2 * samples_a_second("0ms"));
}

TEST_CASE("a swarm of experts trains over real sockets as in virtual time") {
  const scratch_folder folder;
  expert_swarm what;
  what.world = "loopback";
  what.epochs = 10;
  const auto run = run_experts(what, folder);
  CHECK(run.used >= what.epochs * what.batch);
  CHECK(run.missing == 0);
  CHECK(scenarios::verify_data((folder / "run").string()).ok());
}
