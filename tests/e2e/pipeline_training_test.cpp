// The training method 'pipeline': hosts hold the stages of a model, and trainers stream samples
// from the data shard. Everything else is as in any training run.
#include "actors/pipeline/observations.hpp"
#include "actors/pipeline/probes.hpp"
#include "scenarios/record/explain_micro_batch.hpp"
#include "scenarios/record/verify_data.hpp"
#include "scenarios/schema/load.hpp"
#include "tests/e2e/support/program.hpp"
#include "tests/e2e/support/sentences.hpp"
#include "tests/e2e/support/swarm.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <set>
#include <string>
#include <utility>
#include <vector>

using namespace shoal;
using namespace shoal::e2e;

namespace {

struct staged_swarm {
  std::string world = "sim";
  unsigned stages = 4, holders = 8, trainers = 2, epochs = 12, batch = 24;
  std::string workload = "{kind: timing, parameters: 40000, sample_size: 64B}";
  std::string optimizer = "{kind: sgd, learning_rate: 0.1}";
  std::string training;      ///< further options, ', key: value'
  std::string churn;         ///< ', churn: {...}' for the holders
  std::string trainer_churn; ///< the same for the trainers
  std::string more_peers;    ///< lines below `peers:`
  std::string files, data, faults;
  std::uint64_t seed = 1;

  std::string yaml() const {
    return fmt::format(
        "world: {}\nseed: {}\nstop_time: 2h\n"
        "network: {{default_delay: 20ms, default_jitter: 2ms, detection_time: 2s}}\n"
        "devices:\n  small: {{samples_per_second: 40, jitter: 10%, step_time: 2ms}}\n"
        "peers:\n"
        "  holder: {{count: {}, role: stage, up: 50Mbit, down: 50Mbit, device: small{}}}\n"
        "  trainer: {{count: {}, up: 50Mbit, down: 50Mbit, device: small{}}}\n{}"
        "data: {{prefetch_samples: 32{}{}}}\n"
        "workload: {}\n"
        "training: {{method: pipeline, stages: {}, target_batch: {}, micro_batch: 4, epochs: {}, "
        "max_refresh: 4s, optimizer: {}{}}}\n"
        "averaging: {{matchmaking_time: 2s, round_timeout: 20s, sender_timeout: 5s}}\n{}",
        world, seed, holders, churn, trainers, trainer_churn, more_peers,
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

/// Runs a swarm and the same training on one machine.
scenarios::run_outcome run_beside_one_machine(const std::string& yaml,
                                              scenarios::runner_options options) {
  auto loaded = scenarios::load_text(yaml, "pipeline.yaml");
  REQUIRE(loaded.value);
  auto prepared = scenarios::runner::prepare(std::move(*loaded.value), std::move(options));
  REQUIRE_MESSAGE(prepared.ok(), prepared.error());
  auto outcome = (*prepared)->run();
  REQUIRE_MESSAGE(outcome.ok(), outcome.error());
  return std::move(*outcome);
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

TEST_CASE("explain: the slowest micro-batches of a pipeline have the times of their hops") {
  const scratch_folder folder;
  const staged_swarm what;
  scenarios::runner_options options;
  options.out = (folder / "run").string();
  run_staged(what, options);
  const auto slowest = scenarios::explain_micro_batches(folder / "run");
  REQUIRE(slowest);
  REQUIRE(slowest->size() == 5);
  auto before = duration::max();
  for (const auto& one : *slowest) {
    CHECK(one.trainer.starts_with("trainer-"));
    CHECK(one.samples > 0);
    CHECK(one.done - one.begun <= before);
    before = one.done - one.begun;
    // Forward through all hops but the last one, and backward through all of them.
    REQUIRE(one.tasks.size() == 2 * what.stages + 1);
    auto at = one.begun;
    for (const auto& task : one.tasks) {
      CHECK(task.host.starts_with("holder-"));
      CHECK(task.stage == task.hop % what.stages);
      CHECK(task.tries == 1);
      CHECK(task.sent >= at);
      CHECK(task.computed > duration{});
      // There and back, with 20 ms each way and a jitter of 2 ms.
      CHECK(task.underway() >= std::chrono::milliseconds(36));
      at = task.answered;
    }
    CHECK(at <= one.done);
  }
  const auto text = scenarios::to_text(*slowest);
  CHECK(text.find("backward holder-") != std::string::npos);
  CHECK(scenarios::to_json(*slowest).find("\"computed_seconds\"") != std::string::npos);
  CHECK(!scenarios::explain_micro_batches(folder / "no run"));
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
namespace {

/// Audits of a run, and the gradients that had counted at the host `liar` when a trainer banned it.
struct audited_run {
  std::uint64_t right = 0, wrong = 0, disputed = 0, unfinished = 0;
  std::uint64_t liars_banned = 0, honest_banned = 0; ///< by each trainer
  std::uint64_t outputs = 0; ///< gradients that count at the liar before the trainer bans it
  std::vector<std::string> errors;
};

audited_run run_audited(const staged_swarm& what) {
  audited_run out;
  actors::peer_id liar = 0;
  std::set<actors::peer_id> done; // trainers that have banned it
  scenarios::runner_options options;
  options.on_observation = [&](const actors::host& on, const actors::observation& seen) {
    if (on.name() == "liar-0") liar = on.id();
    if (const auto* counted = actors::get_if<actors::gradient_counted>(&seen))
      if (on.id() == liar && !done.contains(counted->pass.trainer)) ++out.outputs;
    const auto* audit = actors::get_if<actors::stage_audited>(&seen);
    if (audit == nullptr) return;
    switch (audit->how) {
    case actors::audit_end::right:
      ++out.right;
      break;
    case actors::audit_end::wrong:
      ++out.wrong;
      ++(audit->peer == liar ? out.liars_banned : out.honest_banned);
      if (audit->peer == liar) done.insert(on.id());
      break;
    case actors::audit_end::disputed:
      ++out.disputed;
      break;
    case actors::audit_end::unfinished:
      ++out.unfinished;
      break;
    }
  };
  out.errors = run_yaml(what.yaml(), what.epochs, std::move(options)).errors;
  return out;
}

staged_swarm audited_swarm(const scratch_folder& folder) {
  staged_swarm what;
  what.files = write_text(folder);
  what.workload = "{kind: transformer, layers: 2, heads: 2, dim: 8, context: 12}";
  what.stages = 2;
  what.holders = 9;
  what.batch = 48;
  what.epochs = 12;
  return what;
}

} // namespace

TEST_CASE("a trainer bans a host of a stage that computes wrong outputs, and no honest one") {
  const scratch_folder folder;
  auto what = audited_swarm(folder);
  what.more_peers = "  liar: {count: 1, role: stage, up: 50Mbit, down: 50Mbit, device: small, "
                    "conduct: wrong_layers}\n";
  what.training = ", audit_share: 20%";
  std::uint64_t outputs = 0, banned = 0;
  for (what.seed = 1; what.seed <= 4; ++what.seed) {
    CAPTURE(what.seed);
    const auto run = run_audited(what);
    CHECK(run.liars_banned == what.trainers);
    CHECK(run.honest_banned == 0);
    CHECK(run.disputed == 0);
    CHECK(run.right > 20);
    outputs += run.outputs;
    banned += run.liars_banned;
  }
  // Each trainer needs five outputs on average. A gradient stands for two of them, and outputs for
  // the other trainers' audits are not counted.
  CHECK(outputs / banned <= 10);
}

TEST_CASE("no attack of one host of a stage, or of one trainer, stops a pipeline") {
  const scratch_folder folder;
  staged_swarm what;
  what.stages = 2;
  what.holders = 6;
  what.trainers = 3;
  what.batch = 64;
  what.workload = "{kind: transformer, layers: 2, heads: 2, dim: 8, context: 8}";
  // Without audits, a host whose outputs are wrong ruins the model.
  what.training = ", audit_share: 20%";
  what.files = write_text(folder);
  const auto honest = run_staged(what).run;
  for (const std::string role : {"role: stage, ", ""}) {
    CAPTURE(role);
    const auto who = role.empty() ? "a trainer" : "a host of a stage";
    under_each_attack(who, honest, [&](const std::string& attack) {
      what.more_peers = fmt::format(
          "  x: {{count: 1, {}up: 50Mbit, down: 50Mbit, device: small, conduct: {{kind: {}}}}}\n",
          role, attack);
      auto run = run_yaml(what.yaml(), what.epochs);
      CHECK(run.summary().epochs >= what.epochs);
      for (const auto& [rule_name, totals] : run.summary().invariants) {
        CAPTURE(rule_name);
        CHECK(totals.violated == 0);
      }
      return run;
    });
  }
}

TEST_CASE("audits of honest hosts of stages that come and go ban nobody") {
  const scratch_folder folder;
  auto what = audited_swarm(folder);
  what.churn = often;
  what.training = ", audit_share: 50%, activations: blockwise8";
  for (what.seed = 1; what.seed <= 4; ++what.seed) {
    CAPTURE(what.seed);
    const auto run = run_audited(what);
    CHECK(run.errors.empty()); // nobody was accused
    CHECK(run.wrong == 0);
    CHECK(run.disputed == 0);
    CHECK(run.right > 100);
  }
}

TEST_CASE("without audits a host that computes wrong outputs stays") {
  const scratch_folder folder;
  auto what = audited_swarm(folder);
  what.more_peers = "  liar: {count: 1, role: stage, up: 50Mbit, down: 50Mbit, device: small, "
                    "conduct: wrong_layers}\n";
  const auto run = run_audited(what);
  CHECK(run.errors.empty());
  CHECK(run.right + run.wrong == 0);
  CHECK(run.outputs > 20);
}

TEST_CASE("a pipeline of hosts that come and go learns text as one machine does") {
  const scratch_folder folder;
  staged_swarm what;
  what.files = write_text(folder);
  what.workload = "{kind: transformer, layers: 4, heads: 2, dim: 8, context: 12}";
  what.optimizer = "{kind: adamw, learning_rate: 0.02, beta2: 0.95}";
  what.holders = 12;
  what.epochs = 40;
  what.churn = often;
  scenarios::runner_options options;
  options.out = (folder / "run").string();
  const auto outcome = run_beside_one_machine(what.yaml(), options);
  CHECK(outcome.summary.epochs == what.epochs);
  CHECK(outcome.summary.peers.left > 5);
  const auto& loss = outcome.summary.loss;
  REQUIRE(loss.first);
  REQUIRE(loss.final);
  REQUIRE(loss.baseline);
  CHECK(*loss.final < 0.7 * *loss.first);
  CHECK(*loss.final == doctest::Approx(*loss.baseline).epsilon(0.03));
  CHECK(std::filesystem::exists(folder / "run" / "final.ckpt"));
}

TEST_CASE("a pipeline with bottlenecks learns as one machine does, and its checkpoint goes on") {
  const scratch_folder folder;
  staged_swarm what;
  what.files = write_text(folder);
  const std::string wide = "{kind: transformer, layers: 4, heads: 2, dim: 16, context: 12";
  what.workload = wide + ", bottlenecks: 4, maxout: 2}";
  what.optimizer = "{kind: adamw, learning_rate: 0.02, beta2: 0.95}";
  what.training = ", activations: blockwise8";
  what.holders = 12;
  what.trainers = 1; // two would have other batches than one machine
  what.epochs = 40;
  what.churn = often;
  scenarios::runner_options options;
  options.out = (folder / "run").string();
  const auto outcome = run_beside_one_machine(what.yaml(), options);
  CHECK(outcome.summary.epochs == what.epochs);
  CHECK(outcome.summary.peers.left > 5);
  const auto& loss = outcome.summary.loss;
  REQUIRE(loss.first);
  REQUIRE(loss.final);
  REQUIRE(loss.baseline);
  CHECK(*loss.final < 0.7 * *loss.first);
  CHECK(*loss.final == doctest::Approx(*loss.baseline).epsilon(0.03));

  const auto saved = folder / "run" / "final.ckpt";
  const auto written =
      run_program({"generate", saved.string(), "--prompt", "the shoal ", "--tokens", "40"});
  CHECK_MESSAGE(written.exit == 0, written.err);
  CHECK(written.out.starts_with("the shoal "));
  CHECK(written.out.size() > 45);
  const auto served =
      run_program({"serve-model", saved.string(), "--listen", "127.0.0.1:7100", "--insecure"});
  INFO(served.err);
  CHECK(served.exit == 1);
  CHECK(served.err.find("has a transformer with bottlenecks (workload.maxout), which only training "
                        "and 'shoal generate' know") != std::string::npos);

  what.training += fmt::format(", start_from: '{}'", saved.string());
  what.epochs = 44;
  const auto on = run_staged(what).run;
  CHECK(on.summary().epochs == 44);
  CHECK(*on.summary().loss.first == doctest::Approx(*loss.final).epsilon(1e-6));
  // Another model is refused, by the check and by the run.
  const auto refuses = [&](const std::string& workload, const std::string& text) {
    what.workload = workload;
    spill(folder / "next.yaml", what.yaml());
    for (const char* command : {"check", "run"}) {
      const auto said = run_program({command, (folder / "next.yaml").string()});
      INFO(said.err);
      CHECK(said.exit == 1);
      CHECK(said.err.find(text) != std::string::npos);
    }
  };
  refuses(wide + "}", "is of another model: it has transformer: bottlenecks 4, context 12");
  refuses(wide + ", bottlenecks: 4, maxout: 4}", "layers 4, maxout 4, vocabulary 256");
}

TEST_CASE("activations behind bottlenecks take their part of the bytes, in 8 bits, too") {
  const scratch_folder folder;
  staged_swarm what;
  what.files = write_text(folder);
  what.epochs = 4;
  const auto data_bytes = [&](const std::string& bottlenecks, const std::string& activations) {
    what.workload =
        "{kind: transformer, layers: 4, heads: 2, dim: 256, context: 12" + bottlenecks + "}";
    what.training = ", activations: " + activations;
    const auto run = run_staged(what).run;
    CHECK(run.summary().samples == what.epochs * what.batch);
    return static_cast<double>(run.summary().bytes_sent.data);
  };
  const std::string half = ", bottlenecks: 4, maxout: 2", quarter = ", bottlenecks: 4, maxout: 4";
  const auto wide = data_bytes("", "none");
  CHECK(data_bytes(half, "none") / wide == doctest::Approx(0.5).epsilon(0.05));
  CHECK(data_bytes("", "blockwise8") / wide == doctest::Approx(0.25).epsilon(0.1));
  CHECK(data_bytes(quarter, "blockwise8") / wide == doctest::Approx(0.0625).epsilon(0.1));
}

TEST_CASE("the check of a pipeline says why an ALBERT cannot be cut") {
  staged_swarm what;
  what.files = "/usr/share/common-licenses/*GPL*";
  const auto errors_of = [&](const std::string& options) {
    what.workload = "{kind: albert, layers: 6" + options + "}";
    std::vector<std::string> out;
    for (const auto& one : scenarios::load_text(what.yaml(), "pipeline.yaml").errors) {
      out.push_back(one.message);
      out.insert(out.end(), one.notes.begin(), one.notes.end());
    }
    return out;
  };
  using messages = std::vector<std::string>;
  CHECK(errors_of("").empty());
  CHECK(errors_of(", prepared_by: peers") ==
        messages{"the hosts of stages read tokens, and workload.prepared_by is 'peers', which "
                 "streams text: leave prepared_by out"});
  what.stages = 7;
  CHECK(errors_of("") == messages{"7 stages: the model uses its layer only 6 times"});
  what.stages = 6;
  what.holders = 2;
  CHECK(errors_of("").empty());
  what.holders = 1;
  CHECK(errors_of("") ==
        messages{"2 stages: the groups of peers with 'role: stage' have 1 host, and each stage "
                 "needs one",
                 "the layers of 'albert' share their tensors and are one stage; its ends are "
                 "another one"});
}

TEST_CASE("an ALBERT in a pipeline of hosts that come and go learns as one machine does") {
  const scratch_folder folder;
  staged_swarm what;
  what.workload = "{kind: albert, layers: 8, heads: 2, hidden: 16, embedding: 8, feed_forward: 32, "
                  "length: 16}";
  what.files = "/usr/share/common-licenses/*GPL*";
  what.optimizer = "{kind: lamb, learning_rate: 0.1, beta2: 0.99, weight_decay: 0.01}";
  what.training = ", activations: blockwise8";
  what.holders = 12;
  what.epochs = 40;
  what.churn = often;
  // The gradients of two hops differ by any factor, and nobody is accused for that.
  auto yaml = what.yaml();
  const std::string averaging = "averaging: {";
  yaml.insert(yaml.find(averaging) + averaging.size(), "max_norm_ratio: 1.5, ");
  std::set<std::uint32_t> stages, hops;
  scenarios::runner_options options;
  options.on_observation = [&](const actors::host&, const actors::observation& seen) {
    const auto* counted = actors::get_if<actors::gradient_counted>(&seen);
    if (counted == nullptr) return;
    stages.insert(counted->stage);
    hops.insert(counted->hop);
  };
  const auto outcome = run_beside_one_machine(yaml, options);
  CHECK(outcome.summary.epochs == what.epochs);
  CHECK(outcome.summary.peers.left > 5);
  CHECK(stages.size() == 2);
  CHECK(hops.size() == what.stages + 2);
  CHECK(outcome.summary.accusations.empty());
  const auto& loss = outcome.summary.loss;
  REQUIRE(loss.first);
  REQUIRE(loss.final);
  REQUIRE(loss.baseline);
  CHECK(*loss.final < 0.9 * *loss.first);
  CHECK(*loss.final == doctest::Approx(*loss.baseline).epsilon(0.01));
}
#endif
