// A data shard that changes samples (`poisoned_samples`), with and without a fixed corpus.
#include "tests/e2e/support/program.hpp"
#include "tests/e2e/support/sentences.hpp"
#include "tests/e2e/support/swarm.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>

using namespace shoal;
using namespace shoal::e2e;

namespace {

struct poisoned_swarm {
  std::string data = ", replicas: 2", role, more_peers;
  std::string workload = "kind: transformer, layers: 2, heads: 2, dim: 16, context: 16";
  std::string training = "target_batch: 32";
  std::string averaging, more;
  unsigned epochs = 40;
  std::uint64_t seed = 1;

  std::string yaml(const std::string& text) const {
    return fmt::format(
        "seed: {}\nstop_time: 30min\n"
        "network: {{default_delay: 20ms, default_jitter: 2ms, detection_time: 2s}}\n"
        "devices:\n  fast: {{samples_per_second: 40, jitter: 10%, step_time: 10ms}}\n"
        "peers:\n"
        "  p: {{count: 4, up: 20Mbit, down: 40Mbit, device: fast}}\n{}"
        "data: {{prefetch_samples: 32, files: ['{}'], holdout: 10%{}}}\n"
        "workload: {{{}}}\n"
        "training: {{micro_batch: 4, epochs: {}, max_refresh: 2s, record_lifetime: 6s, optimizer: "
        "{{kind: adamw, learning_rate: 0.01, beta2: 0.95}}, {}}}\n"
        "averaging: {{matchmaking_time: 2s, round_timeout: 20s, sender_timeout: 3s{}}}\n"
        "record: {{events: none}}\n{}",
        seed, more_peers, text, data, workload, epochs, training, averaging, more);
  }
};

constexpr const char* fixed = ", replicas: 2, corpus_samples: 300";
constexpr const char* poisoned = ", conduct: poisoned_samples";

double loss_of(const finished_run& run) {
  REQUIRE(run.summary().loss.final);
  return *run.summary().loss.final;
}

} // namespace

TEST_CASE("a poisoned sample of a fixed corpus trains nobody, with each method") {
  const scratch_folder folder;
  const auto text = write_text(folder);
  struct method {
    std::string name, training, averaging, more_peers, workload;
  };
  const std::string stages = "  stage: {count: 4, role: stage, up: 20Mbit, down: 40Mbit, device: "
                             "fast}\n";
  const std::string experts =
      "  expert: {count: 3, role: expert, up: 20Mbit, down: 40Mbit, device: "
      "fast}\n";
  const method methods[] = {
      {"synchronous", "target_batch: 32", "", "", ""},
      {"overlap", "target_batch: 32, overlap: averaging", "", "", ""},
      {"DiLoCo", "method: diloco, local_steps: 4", "", "", ""},
      {"Moshpit", "method: moshpit", ", grid: 2x2", "", ""},
      {"pipeline", "target_batch: 32, method: pipeline, stages: 2", "", stages, ""},
      {"experts",
       "target_batch: 32, method: experts, copy_every: 4s, share_every: 3s, answer_timeout: 2s", "",
       experts, "kind: mixture, layers: 1, heads: 2, dim: 8, context: 8, grid: 3x3, chosen: 2"},
  };
  for (const auto& each : methods) {
    CAPTURE(each.name);
    poisoned_swarm what;
    what.training = each.training;
    what.averaging = each.averaging;
    what.more_peers = each.more_peers;
    if (!each.workload.empty()) what.workload = each.workload;
    what.data = fixed;
    const auto calm = run_yaml(what.yaml(text), what.epochs);
    CHECK(calm.errors.empty());
    what.data = std::string(fixed) + poisoned;
    const auto run = run_yaml(what.yaml(text), what.epochs);
    INFO(run.text(what.yaml(text)));
    CHECK(run.summary().epochs >= what.epochs);
    CHECK(run.misbehaved > 0);
    CHECK(run.first_misbehaviour.find("samples that are not of the corpus") != std::string::npos);
    for (const auto& [name, totals] : run.summary().invariants) {
      CAPTURE(name);
      CHECK(totals.violated == 0);
    }
    // The same samples come in another order.
    CHECK(loss_of(run) < 1.1 * loss_of(calm));
    MESSAGE(each.name, ": loss ", loss_of(calm), " and ", loss_of(run), " after ",
            calm.summary().virtual_seconds, " and ", run.summary().virtual_seconds, " s");
  }
}

TEST_CASE("without a fixed corpus a poisoned sample spoils the model") {
  const scratch_folder folder;
  const auto text = write_text(folder);
  poisoned_swarm what;
  const auto calm = run_yaml(what.yaml(text), what.epochs);
  CHECK(calm.errors.empty());
  what.data += poisoned;
  const auto run = run_yaml(what.yaml(text), what.epochs);
  CHECK(run.misbehaved == 0);
  CHECK(loss_of(run) > 1.5 * loss_of(calm));
  MESSAGE("loss ", loss_of(calm), " and ", loss_of(run));
}

TEST_CASE("byzantine: a shard that gives validators other samples bans nobody if the corpus is "
          "fixed") {
  const scratch_folder folder;
  const auto text = write_text(folder);
  poisoned_swarm what;
  what.averaging = ", min_group_size: 3";
  what.more = "security: {kind: btard, validators: 2, radius: 1, probation: 0}\n";
  what.training = "target_batch: 32";
  // Every second message is true, so a trainer and its validator see different samples.
  const std::string some = ", conduct: {kind: poisoned_samples, every: 50ms}";
  what.data += some;
  const auto open = run_yaml(what.yaml(text), what.epochs);
  REQUIRE(open.summary().security);
  CHECK(open.summary().security->honest_banned > 0);
  what.data = fixed + some;
  const auto run = run_yaml(what.yaml(text), what.epochs);
  INFO(run.text(what.yaml(text)));
  REQUIRE(run.summary().security);
  CHECK(run.summary().security->honest_banned == 0);
  CHECK(run.summary().epochs >= what.epochs);
  CHECK(rule(run.summary(), "no_honest_accused").violated == 0);
}

TEST_CASE("a lone shard that changes some samples slows training down, and spoils nothing") {
  const scratch_folder folder;
  const auto text = write_text(folder);
  poisoned_swarm what;
  what.data = ", corpus_samples: 300, conduct: {kind: poisoned_samples, every: 2s}";
  const auto run = run_yaml(what.yaml(text), what.epochs);
  INFO(run.text(what.yaml(text)));
  CHECK(run.summary().epochs >= what.epochs);
  CHECK(run.misbehaved > 0);
  for (const auto& [name, totals] : run.summary().invariants) {
    CAPTURE(name);
    CHECK(totals.violated == 0);
  }
}
