// A swarm's checkpoint, and a swarm that is started from one.
#include "kernels/learn/checkpoint.hpp"
#include "scenarios/record/verify_data.hpp"
#include "tests/e2e/support/program.hpp"
#include "tests/e2e/support/swarm.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

using namespace shoal;
using namespace shoal::e2e;

namespace {

swarm of(const std::string& kind, const std::string& optimizer, unsigned peers, unsigned epochs) {
  swarm what;
  what.kind = kind;
  what.parameters = kind == "logistic" ? "20" : "300"; // so few that batches of 32 find the way
  what.peers = peers;
  what.epochs = epochs;
  what.training = ", checkpoint_every: 5" + optimizer;
  return what;
}

/// The swarm's YAML with another optimizer than the one it always has.
std::string yaml_of(const swarm& what, const std::string& optimizer) {
  auto out = what.yaml();
  const std::string usual = "optimizer: {kind: sgd, learning_rate: 0.1}";
  out.replace(out.find(usual), usual.size(), "optimizer: " + optimizer);
  return out;
}

finished_run run_to(const std::string& yaml, unsigned epochs, const std::filesystem::path& out) {
  scenarios::runner_options options;
  options.out = out.string();
  return run_yaml(yaml, epochs, std::move(options));
}

std::string from(const std::string& yaml, const std::filesystem::path& checkpoint) {
  auto out = yaml;
  const std::string before = "training: {";
  out.insert(out.find(before) + before.size(),
             fmt::format("start_from: '{}', ", checkpoint.string()));
  return out;
}

void check_data(const std::filesystem::path& run) {
  const auto report = scenarios::verify_data(run.string());
  INFO((report.errors.empty() ? "" : report.errors.front()));
  CHECK(report.ok());
}

} // namespace

TEST_CASE("a run of ten epochs and ten from its checkpoint end where a run of twenty ends, to the "
          "bit if one peer trains") {
  for (const char* kind : {"quadratic", "logistic"})
    for (const char* optimizer :
         {"{kind: sgd, learning_rate: 0.1, momentum: 0.9}",
          "{kind: adamw, learning_rate: 0.01, warmup_steps: 3, total_steps: 30}",
          "{kind: lamb, learning_rate: 0.01}", "{kind: adamw8, learning_rate: 0.01}",
          "{kind: lamb8, learning_rate: 0.01}"}) {
      INFO(std::string(kind) << " " << std::string(optimizer));
      const scratch_folder folder;
      const auto whole = run_to(yaml_of(of(kind, "", 1, 20), optimizer), 20, folder / "whole");
      const auto first = run_to(yaml_of(of(kind, "", 1, 10), optimizer), 10, folder / "first");
      const auto saved = folder / "first" / "checkpoints" / "epoch-10.ckpt";
      const auto second =
          run_to(from(yaml_of(of(kind, "", 1, 20), optimizer), saved), 20, folder / "second");
      for (const auto* run : {&whole, &first, &second})
        CHECK_MESSAGE(run->errors.empty(), run->text(""));
      for (const char* run : {"whole", "first", "second"}) check_data(folder / run);
      // The same file twice: the whole run passed the same state.
      const auto a = learn::load_checkpoint(saved),
                 b = learn::load_checkpoint(folder / "whole" / "checkpoints" / "epoch-10.ckpt");
      REQUIRE_MESSAGE(a.ok(), a.error());
      REQUIRE_MESSAGE(b.ok(), b.error());
      CHECK(a->parameters == b->parameters);
      CHECK(a->epoch == 10);
      CHECK(a->samples == a->data_from);
      const auto c = learn::load_checkpoint(folder / "second" / "checkpoints" / "epoch-20.ckpt"),
                 d = learn::load_checkpoint(folder / "whole" / "checkpoints" / "epoch-20.ckpt");
      REQUIRE_MESSAGE(c.ok(), c.error());
      REQUIRE_MESSAGE(d.ok(), d.error());
      CHECK(c->parameters == d->parameters);
      CHECK(c->optimizer_state == d->optimizer_state);
      CHECK(c->samples == d->samples);
      CHECK(c->data_from == d->data_from);
      CHECK(c->step == d->step);
      CHECK(second.summary().loss.final == whole.summary().loss.final);
    }
}

TEST_CASE("a checkpoint of lamb is refused where adamw8 goes on, by the check and by the run") {
  const scratch_folder folder;
  const auto first = run_to(yaml_of(of("quadratic", "", 1, 5), "{kind: lamb, learning_rate: 0.01}"),
                            5, folder / "first");
  REQUIRE_MESSAGE(first.errors.empty(), first.text(""));
  const auto scenario = folder / "next.yaml";
  spill(scenario, from(yaml_of(of("quadratic", "", 1, 10), "{kind: adamw8, learning_rate: 0.01}"),
                       folder / "first" / "checkpoints" / "epoch-5.ckpt"));
  for (const auto& arguments : {std::vector<std::string>{"check", scenario.string()},
                                std::vector<std::string>{"run", scenario.string(), "-q"}}) {
    const auto said = run_program(arguments);
    INFO(said.err);
    CHECK(said.exit == 1);
    CHECK(said.err.find("is of another optimizer: it has lamb; the scenario has adamw8") !=
          std::string::npos);
  }
}

TEST_CASE("a swarm that is started again reaches the loss of one that was not stopped") {
  // Not the same samples are in each step: the second run begins behind all that were used, and its
  // timing is its own. So the two differ by the noise of the gradients alone.
  for (const char* kind : {"quadratic", "logistic"}) {
    const scratch_folder folder;
    const std::string optimizer = "{kind: adamw, learning_rate: 0.05}";
    const auto whole = run_to(yaml_of(of(kind, "", 5, 40), optimizer), 40, folder / "whole");
    const auto first = run_to(yaml_of(of(kind, "", 5, 20), optimizer), 20, folder / "first");
    const auto second = run_to(from(yaml_of(of(kind, "", 3, 40), optimizer),
                                    folder / "first" / "checkpoints" / "epoch-20.ckpt"),
                               40, folder / "second");
    for (const auto* run : {&whole, &first, &second})
      CHECK_MESSAGE(run->errors.empty(), run->text(""));
    for (const char* run : {"whole", "first", "second"}) check_data(folder / run);
    REQUIRE(whole.summary().loss.final);
    const auto begun = *first.summary().loss.first, there = *whole.summary().loss.final,
               here = *second.summary().loss.final;
    INFO(std::string(kind) << ": from " << begun << ", whole " << there << ", half way "
                           << *first.summary().loss.final << ", restarted " << here);
    CHECK(*second.summary().loss.first == *first.summary().loss.final);
    CHECK(std::abs(here - there) < 0.02 * (begun - there));
  }
}

TEST_CASE("a swarm with joiners and deaths is started again, by moshpit peers, too") {
  for (const char* method : {"synchronous", "moshpit"}) {
    const scratch_folder folder;
    auto what = of("quadratic", fmt::format(", method: {}", method), 4, 10);
    what.late = "  late: {count: 1, up: 1Mbit, down: 4Mbit, device: fast, start: 4s}\n";
    const auto first = run_to(what.yaml(), 10, folder / "first");
    CHECK_MESSAGE(first.errors.empty(), first.text(what.yaml()));
    what.epochs = 20;
    what.faults = {"{kill: process, select: p-1, at: 5s}"};
    const auto again = from(what.yaml(), folder / "first" / "checkpoints" / "epoch-10.ckpt");
    const auto second = run_to(again, 20, folder / "second");
    CHECK_MESSAGE(second.errors.empty(), second.text(again));
    check_data(folder / "second");
    // Moshpit peers have parameters of their own: the file has those of the first peer there.
    if (std::string(method) == "synchronous")
      CHECK(*second.summary().loss.first == *first.summary().loss.final);
    CHECK(*second.summary().loss.final < 0.1 * *first.summary().loss.first);
    const auto saved = learn::load_checkpoint(folder / "second" / "checkpoints" / "epoch-20.ckpt");
    REQUIRE_MESSAGE(saved.ok(), saved.error());
    CHECK(saved->data_from >
          learn::load_checkpoint(folder / "first" / "checkpoints" / "epoch-10.ckpt")->data_from);
  }
}

TEST_CASE(
    "the Q of PowerSGD is in a checkpoint, and another run leaves it or begins with a fresh one") {
  auto what = of("quadratic", "", 3, 10);
  what.parameters = "4096";
  what.workload = ", rows: 64";
  const auto without = what.yaml();
  what.averaging = ", power_sgd_rank: 2";
  const scratch_folder folder;
  const auto first = run_to(what.yaml(), 10, folder / "first");
  CHECK(first.errors.empty());
  const auto saved = learn::load_checkpoint(folder / "first/checkpoints/epoch-5.ckpt");
  REQUIRE(saved.ok());
  CHECK(saved->power_sgd_rank == 2);
  CHECK(saved->power_sgd_values == 2 * 64);
  CHECK(saved->optimizer_state.size() == 4 * 2 * 64); // the state of sgd without momentum is empty
  const auto on = [&](const std::string& yaml, const char* name) {
    const auto run =
        run_to(from(yaml, folder / "first/checkpoints/epoch-5.ckpt"), 10, folder / name);
    INFO(run.text(yaml));
    CHECK(run.errors.empty());
    CHECK(*run.summary().loss.final < *run.summary().loss.first);
    const auto last = learn::load_checkpoint(folder / (std::string(name) + "/final.ckpt"));
    REQUIRE(last.ok());
    return std::pair{last->power_sgd_rank, last->optimizer_state.size()};
  };
  CHECK(on(what.yaml(), "same") == std::pair<std::uint64_t, std::size_t>{2, 512});
  CHECK(on(without, "without") == std::pair<std::uint64_t, std::size_t>{0, 0});
  what.averaging = ", power_sgd_rank: 3";
  CHECK(on(what.yaml(), "other") == std::pair<std::uint64_t, std::size_t>{3, 768});
}

TEST_CASE("check finds a checkpoint that a run cannot start from, and says what is wrong with it") {
  const scratch_folder folder;
  auto what = of("quadratic", "", 2, 10);
  what.training = ", checkpoint_every: 5";
  spill(folder / "s.yaml", what.yaml());
  const auto scenario = (folder / "s.yaml").string();
  REQUIRE(run_program({"run", scenario, "-q", "--out", (folder / "r").string()}).exit == 0);
  const auto good = slurp(folder / "r" / "checkpoints" / "epoch-5.ckpt");
  CHECK(std::filesystem::exists(folder / "r" / "checkpoints" / "epoch-10.ckpt"));
  CHECK(std::distance(std::filesystem::directory_iterator(folder / "r" / "checkpoints"), {}) == 2);
  const auto check = [&](const std::string& start, std::vector<std::string> sets = {}) {
    std::vector<std::string> arguments{"check", scenario, "--set", "training.start_from=" + start};
    for (auto& set : sets) arguments.insert(arguments.end(), {"--set", set});
    return run_program(arguments);
  };
  // Relative to the scenario's folder.
  CHECK(check("r/checkpoints/epoch-5.ckpt").exit == 0);
  const auto wrong = [&](const std::string& start, const std::vector<std::string>& sets,
                         const char* text) {
    const auto said = check(start, sets);
    INFO(said.err);
    CHECK(said.exit == 1);
    CHECK(said.err.find(text) != std::string::npos);
  };
  const std::string path = "r/checkpoints/epoch-5.ckpt";
  wrong("none.ckpt", {}, "does not exist");
  wrong("s.yaml", {}, "is not a Shoal checkpoint");
  wrong(path, {"workload.parameters=301"},
        "it has quadratic: weights [300]; the scenario has quadratic: weights [301]");
  wrong(path, {"workload.kind=logistic"},
        "it has quadratic: weights [300]; the scenario has logistic: weights [300]");
  wrong(path, {"workload.kind=transformer", "workload.dim=32"},
        "the scenario has transformer: context 64, dim 32, heads 4, layers 2, vocabulary 256");
  wrong(path, {"training.optimizer.kind=adamw"},
        "is of another optimizer: it has sgd; the scenario has adamw");
  wrong(path, {"training.optimizer.kind=lamb8"},
        "is of another optimizer: it has sgd; the scenario has lamb8");
  wrong(path, {"training.epochs=5"}, "is of epoch 5: training.epochs 5 leaves nothing to do");
  wrong(path, {"workload.kind=timing"}, "workload 'timing' has no numbers");
  auto bad = good;
  bad[bad.size() - 4 * 32 - 100] ^= 1;
  spill(folder / "bad.ckpt", bad);
  wrong("bad.ckpt", {}, "the hash of its parameters should be ");
  spill(folder / "short.ckpt", good.substr(0, good.size() - 50));
  wrong("short.ckpt", {}, "truncated");
  // A run says the same.
  const auto run = run_program({"run", scenario, "-q", "--set", "training.start_from=bad.ckpt"});
  CHECK(run.exit == 1);
  CHECK(run.err.find("the hash of its parameters should be ") != std::string::npos);
  // And goes on from a good one, in the same directory.
  const auto on =
      run_program({"run", scenario, "-q", "--out", (folder / "r").string(), "--force", "--set",
                   "training.start_from=" + path, "--set", "training.epochs=12"});
  CHECK_MESSAGE(on.exit == 0, on.err);
  CHECK(!std::filesystem::exists(folder / "r" / "checkpoints" / "epoch-5.ckpt"));
  CHECK(std::filesystem::exists(folder / "r" / "checkpoints" / "epoch-10.ckpt"));
}

TEST_CASE("check refuses a checkpoint whose optimizer keeps its moments in another format") {
  for (const auto& [saved, wanted] :
       {std::pair{"lamb", "adamw8"}, {"lamb", "lamb8"}, {"adamw8", "lamb8"}, {"adamw8", "adamw"}}) {
    CAPTURE(saved);
    CAPTURE(wanted);
    const scratch_folder folder;
    spill(folder / "s.yaml", yaml_of(of("quadratic", "", 1, 5),
                                     fmt::format("{{kind: {}, learning_rate: 0.01}}", saved)));
    const auto scenario = (folder / "s.yaml").string();
    REQUIRE(run_program({"run", scenario, "-q", "--out", (folder / "r").string()}).exit == 0);
    for (const char* command : {"check", "run"}) {
      const auto said = run_program(
          {command, scenario, "--set", "training.start_from=r/checkpoints/epoch-5.ckpt", "--set",
           "training.epochs=10", "--set", fmt::format("training.optimizer.kind={}", wanted)});
      INFO(said.err);
      CHECK(said.exit == 1);
      CHECK(said.err.find(fmt::format("is of another optimizer: it has {}; the scenario has {}",
                                      saved, wanted)) != std::string::npos);
    }
  }
}

TEST_CASE("a disk that is full when a checkpoint is due ends the run with the reason") {
  const scratch_folder folder;
  auto what = of("quadratic", "", 2, 10);
  what.parameters = "30000";
  spill(folder / "s.yaml", what.yaml());
  program_options options;
  options.file_size_limit = 60'000;
  const auto run = run_program(
      {"run", (folder / "s.yaml").string(), "-q", "--out", (folder / "r").string()}, options);
  INFO(run.err);
  CHECK(run.exit == 3);
  CHECK(run.err.find("epoch-5.ckpt") != std::string::npos);
  CHECK(run.err.find("File too large") != std::string::npos);
}
