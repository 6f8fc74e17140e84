// Moshpit SGD in virtual time. Each peer's parameters are those of plain loops over its samples and
// its received averages, and swarms survive failures.
#include "actors/averaging/observations.hpp"
#include "actors/data/sample_ranges.hpp"
#include "actors/probes.hpp"
#include "actors/training/observations.hpp"
#include "scenarios/schema/load.hpp"
#include "scenarios/workloads/prepared.hpp"
#include "tests/e2e/support/swarm.hpp"
#include "tests/support/skip.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstring>
#include <map>
#include <set>

using namespace shoal;
using namespace shoal::e2e;

namespace {

swarm moshpit(unsigned peers, const std::string& grid) {
  swarm out;
  out.peers = peers;
  out.training = ", method: moshpit, local_steps: 4";
  out.averaging = ", grid: " + grid;
  return out;
}

finished_run run_fine(const swarm& what, scenarios::runner_options options = {}) {
  auto run = run_swarm(what, std::move(options));
  INFO(run.text(what.yaml()));
  CHECK(run.errors.empty());
  return run;
}

/// Follows a peer by what it observes and computes the same in plain loops.
class replayed_peer {
public:
  replayed_peer(std::shared_ptr<const actors::workload> work,
                std::shared_ptr<const actors::sample_source> source)
      : work_(std::move(work)), source_(std::move(source)),
        now_(work_->initial()), history_{{0, now_}} {}

  void on(const actors::trained& what) {
    const auto count = actors::index_count(what.samples);
    std::vector<std::byte> bytes(count * work_->sample_bytes());
    std::size_t at = 0;
    for (const auto& range : what.samples)
      for (auto index = range.first; index < range.end(); ++index, at += work_->sample_bytes())
        source_->read(index, std::span(bytes).subspan(at, work_->sample_bytes()));
    std::vector<double> sum(work_->value_count());
    work_->accumulate(now_, bytes, count, sum);
    std::vector<float> mean(sum.size());
    for (std::size_t i = 0; i < mean.size(); ++i)
      mean[i] = static_cast<float>(sum[i] / static_cast<double>(count));
    now_ = work_->step(now_, payload{std::move(mean)});
    pending_ += count;
    history_.push_back({pending_, now_});
    if (in_round_) ++steps_beside_rounds;
  }
  /// A contribution was taken when exactly its samples were computed: false if it is anything else
  /// than what we had then.
  bool on(const actors::contributed& what) {
    const auto count = actors::index_count(what.samples);
    for (const auto& [samples, state] : history_)
      if (samples == count) contributed_ = state;
    contributed_samples_ = count;
    in_round_ = true;
    return what.values.size() == contributed_.parameters.size() &&
           std::memcmp(what.values.bytes().data(), contributed_.parameters.bytes().data(),
                       what.values.size()) == 0;
  }
  void on(const actors::round_ended& what) {
    if (what.outcome != actors::outcome::failed)
      mean_ = what.values;
    else
      in_round_ = false;
  }
  void on(const actors::stepped&) {
    std::vector<float> x(now_.parameters.floats().begin(), now_.parameters.floats().end());
    if (now_.parameters.bytes().data() == contributed_.parameters.bytes().data())
      x.assign(mean_.floats().begin(), mean_.floats().end());
    else
      for (std::size_t i = 0; i < x.size(); ++i)
        x[i] = mean_.floats()[i] + (x[i] - contributed_.parameters.floats()[i]);
    now_.parameters = payload{std::move(x)};
    pending_ -= contributed_samples_;
    history_ = {{pending_, now_}};
    in_round_ = false;
  }
  std::size_t steps_beside_rounds = 0;

private:
  std::shared_ptr<const actors::workload> work_;
  std::shared_ptr<const actors::sample_source> source_;
  actors::model_state now_, contributed_;
  std::vector<std::pair<std::uint64_t, actors::model_state>>
      history_; // samples since the last average, and what they made
  std::uint64_t pending_ = 0, contributed_samples_ = 0;
  payload mean_;
  bool in_round_ = false;
};

void check_replay(swarm what, const std::string& optimizer = "{kind: sgd, learning_rate: 0.1}") {
  what.epochs = 8;
  auto yaml = what.yaml();
  const std::string plain = "{kind: sgd, learning_rate: 0.1}";
  yaml.replace(yaml.find(plain), plain.size(), optimizer);
  auto loaded = scenarios::load_text(yaml, "swarm.yaml");
  REQUIRE(loaded.value);
  auto work = scenarios::prepare_workload(*loaded.value);
  REQUIRE(work);
  std::map<actors::peer_id, replayed_peer> peers;
  std::size_t contributions = 0, wrong = 0, steps = 0;
  scenarios::runner_options options;
  options.on_observation = [&](const actors::host& from, const actors::observation& seen) {
    const auto follow = [&](auto& what) {
      auto& peer = peers.try_emplace(from.id(), (*work)->work(), (*work)->source()).first->second;
      return peer.on(what);
    };
    if (auto* trained = actors::get_if<actors::trained>(&seen)) follow(*trained);
    if (auto* ended = actors::get_if<actors::round_ended>(&seen)) follow(*ended);
    if (auto* step = actors::get_if<actors::stepped>(&seen)) follow(*step), ++steps;
    if (auto* contribution = actors::get_if<actors::contributed>(&seen)) {
      ++contributions;
      if (!follow(*contribution)) ++wrong;
    }
  };
  const auto run = run_yaml(yaml, what.epochs, std::move(options));
  INFO(run.text(yaml));
  CHECK(run.errors.empty());
  CHECK(steps >= what.epochs * what.peers / 2);
  CHECK(contributions >= steps);
  CHECK(wrong == 0);
  std::size_t beside = 0;
  for (const auto& [id, peer] : peers) beside += peer.steps_beside_rounds;
  CHECK(beside > 0);
}

} // namespace

TEST_CASE("moshpit: every contribution is, to the last bit, what plain loops make of the peer's "
          "samples and averages") {
  check_replay(moshpit(9, "3x3"));
}

TEST_CASE(
    "moshpit: so it is with momentum, and when a round takes as long as several local steps") {
  auto what = moshpit(4, "2x2");
  what.up = "400kbit";
  check_replay(what, "{kind: adamw, learning_rate: 0.01}");
}

TEST_CASE("moshpit: a swarm without trouble comes close to the optimum, each round in groups of "
          "the grid") {
  auto what = moshpit(16, "4x4");
  what.epochs = 25;
  const auto run = run_fine(what);
  CHECK(run.summary().rounds.failed <=
        1); // a group that begins in the instant in which the run ends and others leave
  CHECK(*run.summary().loss.final < 0.05 * *run.summary().loss.first);
  CHECK(run.summary().rounds.ok >= 3 * what.epochs); // up to four groups a round
}

TEST_CASE("moshpit: the optimizer's state may be averaged, too") {
  auto what = moshpit(9, "3x3");
  what.epochs = 15;
  auto yaml = what.yaml();
  const std::string plain = "{kind: sgd, learning_rate: 0.1}, method: moshpit";
  yaml.replace(
      yaml.find(plain), plain.size(),
      "{kind: adamw, learning_rate: 0.5, beta2: 0.9}, average_optimizer: true, method: moshpit");
  const auto with = run_yaml(yaml, what.epochs);
  CHECK(with.errors.empty());
  CHECK(*with.summary().loss.final < 0.5 * *with.summary().loss.first); // and finite
  yaml.replace(yaml.find("average_optimizer: true"), 23, "average_optimizer: false");
  const auto without = run_yaml(yaml, what.epochs);
  CHECK(with.summary().bytes_sent.averaging >
        2 * without.summary().bytes_sent.averaging); // three vectors instead of one
}

TEST_CASE("moshpit: one peer alone trains, and commits what it computed") {
  auto what = moshpit(1, "2x2");
  const auto run = run_fine(what);
  CHECK(run.summary().rounds.ok == what.epochs);
  CHECK(run.summary().samples >= 4 * 4 * (what.epochs - 1));
}

TEST_CASE("moshpit: peers of unequal speed take part with the steps that they have made") {
  auto what = moshpit(6, "3x3");
  what.late = "  slow: {count: 2, up: 1Mbit, down: 4Mbit, device: slow}\n";
  auto yaml = what.yaml();
  yaml.replace(yaml.find("devices:\n"), 9, "devices:\n  slow: {samples_per_second: 4}\n");
  const auto run = run_yaml(yaml, what.epochs);
  INFO(run.text(yaml));
  CHECK(run.errors.empty());
  CHECK(run.epoch_of.size() == 8);
  for (const auto& [peer, epoch] : run.epoch_of) CHECK(epoch + 2 >= what.epochs);
}

TEST_CASE("moshpit: any of four peers may die at each probe") {
  for (const char* scope : {"process", "machine"})
    for (auto probe : actors::probes::all) {
      auto what = moshpit(4, "2x2");
      what.faults = {fmt::format("{{kill: {}, select: p-{}, on: {}, nth: 2}}", scope,
                                 probe.size() % 4, probe)};
      run_fine(what);
    }
}

TEST_CASE("moshpit: who comes late downloads a state of the leading round") {
  auto what = moshpit(6, "3x3");
  what.epochs = 12;
  what.late = "  late: {count: 2, up: 1Mbit, down: 4Mbit, device: fast, start: 6s}\n";
  const auto run = run_fine(what);
  CHECK(run.adopted >= 2);
}

TEST_CASE("moshpit: who was away for longer than max_staleness downloads; for less it goes on with "
          "its parameters") {
  for (const unsigned away : {0u, 20u}) {
    auto what = moshpit(6, "3x3");
    what.epochs = 30;
    if (away > 0)
      what.faults = {fmt::format("{{pause: host, select: p-0, at: 5s, duration: {}s}}", away)};
    const auto run = run_fine(what);
    CHECK((run.adopted > 0) == (away > 0));
  }
}

TEST_CASE("moshpit: a part of the swarm that was cut off does not lead it, however far it went") {
  auto what = moshpit(9, "3x3");
  what.epochs = 60;
  what.faults = {"{partition: minority-third, at: 5s, duration: 20s}"};
  run_fine(what);
}

TEST_CASE("moshpit: a sample that a peer forgets is found") {
  scenarios::runner_options options;
  options.conduct = "lost_sample";
  const auto run = run_swarm(moshpit(4, "2x2"), std::move(options));
  CHECK(rule(run.summary(), "samples_counted").violated > 0);
}

TEST_CASE("moshpit: one seed gives one history, another another") {
  auto what = moshpit(6, "3x3");
  const auto a = run_fine(what), b = run_fine(what);
  CHECK(a.summary().event_hash == b.summary().event_hash);
  CHECK(a.summary().state_hash == b.summary().state_hash);
  what.seed = 2;
  CHECK(run_fine(what).summary().event_hash != a.summary().event_hash);
}

TEST_CASE("moshpit: sizes alone make the same protocol") {
  auto what = moshpit(8, "3x3");
  what.kind = "timing";
  CHECK(run_fine(what).summary().rounds.ok > 0);
}

TEST_CASE("moshpit: a swarm much smaller than its grid goes on, although each peer is alone in its "
          "line for many rounds on end") {
  // Found by shoal chaos: all had made as many steps as a peer makes alone before the batch was
  // full.
  const auto run = run_yaml(R"(
seed: 5
stop_time: 15min
network: {model: max_min, default_delay: 119ms, default_jitter: 1ms, detection_time: 2s}
devices: {fast: {samples_per_second: 8, jitter: 10%, step_time: 100ms}}
peers: {core: {count: 4, up: 1116kbit, down: 4655kbit, delay: 95ms, device: fast, start_spacing: 10ms}}
data: {prefetch_samples: 63, lease_time: 2min}
workload: {kind: timing, parameters: 1600, sample_size: 64B}
training: {micro_batch: 8, min_refresh: 500ms, max_refresh: 8s, record_lifetime: 32s, method: moshpit, local_steps: 12, epochs: 40,
           optimizer: {kind: adamw, learning_rate: 0.01}}
averaging: {matchmaking_time: 2s, round_timeout: 24s, sender_timeout: 4s, chunk_size: 64KiB, grid: 3x3}
record: {events: none}
)",
                            40);
  INFO(run.text(""));
  CHECK(run.errors.empty());
}

TEST_CASE("moshpit: random deaths, restarts and arrivals break nothing") {
  for (std::uint64_t seed = 1; seed <= tries(3, 12); ++seed) {
    auto what = moshpit(10, "4x4");
    what.seed = seed;
    what.epochs = 30;
    what.late = "  home: {count: 6, up: 1Mbit, down: 4Mbit, device: fast, churn: {session: "
                "{distribution: weibull, mean: 40s, shape: 0.6}, "
                "gap: {distribution: exponential, mean: 10s}, ending: machine}}\n";
    what.faults = {"{kill: process, select: \"*\", on: all_reduce.half_sent, probability: 2%}",
                   "{restart: process, select: \"p-*\", every: 15s, mode: one, downtime: 3s}"};
    run_fine(what);
  }
}

TEST_CASE(
    "local updates: everybody's parameters are averaged in one group after each target batch") {
  swarm what;
  what.peers = 5;
  what.epochs = 8;
  what.training = ", method: local_updates";
  const auto run = run_swarm(what);
  INFO(run.text(what.yaml()));
  CHECK(run.errors.empty());
  CHECK(run.summary().rounds.ok >= what.epochs);
  CHECK(*run.summary().loss.final < 0.5 * *run.summary().loss.first);
  // A round is due with 32 samples (more are computed while it lasts), and not with 8 steps of each
  // peer.
  CHECK(run.summary().samples >= what.epochs * 32);
  CHECK(run.summary().samples < what.epochs * 8 * 4 * what.peers);
}
