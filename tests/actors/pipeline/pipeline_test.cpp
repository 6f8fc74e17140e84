// actors/pipeline/stage_peer and pipeline_trainer: a pipeline learns what one machine learns, to a
// millionth, although peers die at any point of the protocol.
#include "actors/dht/host_record.hpp"
#include "actors/observe.hpp"
#include "actors/pipeline/observations.hpp"
#include "actors/pipeline/pipeline_trainer.hpp"
#include "actors/pipeline/probes.hpp"
#include "actors/pipeline/stage_peer.hpp"
#include "actors/probes.hpp"
#include "actors/training/observations.hpp"
#include "actors/training/optimizer_step.hpp"
#include "kernels/learn/even_cut.hpp"
#include "tests/actors/pipeline/distance.hpp"
#include "tests/actors/pipeline/five_layers.hpp"
#include "tests/actors/support/directory.hpp"
#include "tests/actors/support/mini_world.hpp"

#include <caf/send.hpp>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

using namespace shoal;
using namespace shoal::actors;
using namespace shoal::actors::testing;
using namespace std::chrono_literals;

namespace {

constexpr std::uint64_t batch = 12;

kernels::optimizer_config adam() {
  kernels::optimizer_config out;
  out.learning_rate = 0.01;
  return out;
}

using sample_reader = std::function<payload(std::uint64_t first, std::uint64_t count)>;

payload bytes_of(const std::vector<std::byte>& all, std::uint64_t first, std::uint64_t count) {
  const auto at = all.begin() + static_cast<std::ptrdiff_t>(first * (context + 1));
  return payload(
      std::vector<std::byte>(at, at + static_cast<std::ptrdiff_t>(count * (context + 1))));
}

payload batch_bytes(std::uint64_t first, std::uint64_t count) {
  static const auto all = samples_of(batch * 40);
  return bytes_of(all, first, count);
}

/// Reads a key of the directory once.
class reader final : public protocol_actor {
public:
  reader(caf::actor_config& config, host& on, caf::actor dht, std::string key,
         std::shared_ptr<found> into)
      : protocol_actor(config, on), dht_(std::move(dht)), key_(std::move(key)),
        into_(std::move(into)) {}
  caf::behavior make_behavior() override {
    send(dht_, lookup{key_, address(), 0});
    return {[this](const found& m) { *into_ = m; }};
  }
  void on_exit() override {
    dht_ = nullptr;
    protocol_actor::on_exit();
  }

private:
  caf::actor dht_;
  std::string key_;
  std::shared_ptr<found> into_;
};

/// Announces the state of the first peer of a stage as its own, and gives other bytes for it.
class lying_donor final : public protocol_actor {
public:
  lying_donor(caf::actor_config& config, host& on, caf::actor dht, std::uint32_t stage,
              bool announces_lie, state_ptr like, std::shared_ptr<int> asked)
      : protocol_actor(config, on), dht_(std::move(dht)), stage_(stage),
        announces_lie_(announces_lie), like_(std::move(like)), asked_(std::move(asked)) {}
  caf::behavior make_behavior() override {
    set_timer(50ms, 0);
    return {
        [this](const tick&) {
          send(dht_, lookup{stage_key("r", stage_), address(), 0});
          set_timer(50ms, 0);
        },
        [this](const found& m) {
          for (const auto& each : m.records) {
            auto record = stage_record::unpack(each->value);
            if (!record || each->subkey == host_subkey(here())) continue;
            if (announces_lie_) record->content = {6, 6};
            record_ = *record;
            send(dht_, store{m.key, host_record(here(), address(), record_.pack(), 10s)});
            return;
          }
        },
        [this](const stage_state_request& m) {
          ++*asked_;
          send(m.reply_to, stage_state{stage_, record_.epoch, record_.epoch, 0, record_.state,
                                       like_->parameters, like_->optimizer});
        },
    };
  }
  void on_exit() override {
    dht_ = nullptr;
    protocol_actor::on_exit();
  }

private:
  caf::actor dht_;
  std::uint32_t stage_;
  bool announces_lie_;
  state_ptr like_;
  stage_record record_;
  std::shared_ptr<int> asked_;
};

struct lab_options {
  std::uint32_t stages = 4;
  std::vector<std::size_t> peers = std::vector<std::size_t>(stages, 2);
  std::uint32_t trainers = 1;
  kernels::codec codec = kernels::codec::none;
  std::uint64_t epochs = 4;
  sample_reader samples = batch_bytes;
  duration rebalance_every{};
  duration sample_time = 10ms;
  duration record_lifetime = 10s;
  std::uint64_t seed = 1;
};

class pipeline_lab {
public:
  explicit pipeline_lab(lab_options options)
      : how(std::move(options)), world(how.seed), model(five_layers()),
        whole_parameters(parameters_of(*model)),
        cut(stage_model::make(model, learn::even_cut(5, how.stages), read_batch).value()),
        states(how.stages) {
    const auto stages = how.stages;
    auto& host = world.add_host("directory");
    directory_ = world.spawn<directory>(host);
    for (std::uint32_t s = 0; s < stages; ++s) {
      states[s] =
          initial_stage_state(*cut, s, adam(), model->layout(), whole_parameters, 1).value();
      initial_.push_back(states[s]);
    }
    for (std::uint32_t s = 0; s < stages; ++s)
      for (std::size_t i = 0; i < how.peers[s]; ++i) add_peer(s);
    for (std::uint32_t i = 0; i < how.trainers; ++i) {
      auto& at = world.add_host(fmt::format("trainer-{}", i));
      pipeline_trainer_config config;
      config.run = "r";
      config.model = cut;
      config.time = context;
      config.target_batch = batch;
      config.micro_batch = 2;
      config.epochs = how.epochs;
      config.trainer = i;
      config.trainers = how.trainers;
      config.in_flight = 3;
      config.activations = how.codec;
      config.samples = how.samples;
      config.dht = directory_;
      world.spawn<pipeline_trainer>(at, std::move(config));
    }
  }

  mini_host& add_peer(std::uint32_t stage) {
    auto& host = world.add_host(fmt::format("peer-{}", peers.size()));
    stage_peer_config config;
    config.run = "r";
    config.stage = stage;
    config.model = cut;
    config.optimizer = adam();
    config.initial = initial_;
    config.target_batch = batch;
    config.rebalance_every = how.rebalance_every;
    config.sample_time = how.sample_time;
    config.record_lifetime = how.record_lifetime;
    config.on_step = [this](std::uint32_t at, const state_ptr& state) {
      if (state->epoch >= states[at]->epoch) states[at] = state;
    };
    config.dht = directory_;
    peers.push_back(&host);
    world.spawn<stage_peer>(host, std::move(config));
    return host;
  }

  const state_ptr& initial(std::uint32_t stage) const { return initial_[stage]; }
  /// A host that does nothing else writes this record of itself.
  void claim(const stage_record& what) {
    auto& host = world.add_host("liar");
    const auto liar = world.spawn<collector<tick>>(host, std::make_shared<collector<tick>::log>());
    caf::send_as(liar, directory_,
                 store{stage_key("r", what.stage), host_record(host, liar, what.pack(), 1h)});
  }

  /// The same for a trainer.
  void claim(const trainer_record& what) {
    auto& host = world.add_host("lying trainer");
    const auto liar = world.spawn<collector<tick>>(host, std::make_shared<collector<tick>::log>());
    caf::send_as(liar, directory_,
                 store{trainers_key("r"), host_record(host, liar, what.pack(), 1h)});
  }
  /// How often the donor was asked for the state.
  std::shared_ptr<int> add_lying_donor(std::uint32_t stage, bool announces_lie) {
    auto asked = std::make_shared<int>(0);
    world.spawn<lying_donor>(world.add_host("lying donor"), directory_, stage, announces_lie,
                             initial_[stage], asked);
    return asked;
  }

  /// The records under the key, now.
  found read(const std::string& key) {
    auto out = std::make_shared<found>();
    auto& host = world.add_host(fmt::format("reader-{}", readers_++));
    world.spawn<reader>(host, directory_, key, out);
    world.run_for(100ms);
    return *out;
  }

  bool done() const {
    for (const auto& state : states)
      if (state->epoch < how.epochs) return false;
    return true;
  }
  void run(duration most = 10min) {
    for (const auto until = world.now() + most; !done() && world.now() < until;)
      world.run_for(500ms);
    CHECK(done());
  }

  std::vector<float> parameters() const {
    std::vector<float> out(whole_parameters.size());
    for (std::uint32_t s = 0; s < cut->stages(); ++s)
      REQUIRE(learn::scatter_add(cut->tensors_of(s), states[s]->parameters.floats(),
                                 model->layout(), out));
    return out;
  }

  lab_options how;
  mini_world world;
  std::shared_ptr<const learn::decoder> model;
  std::vector<float> whole_parameters;
  std::shared_ptr<const stage_model> cut;
  std::vector<state_ptr> states; // the newest of each stage
  std::vector<mini_host*> peers;

private:
  caf::actor directory_;
  std::vector<state_ptr> initial_;
  int readers_ = 0;
};

/// The parameters after the same batches on one machine.
std::vector<float> alone(std::uint64_t epochs = 4, const sample_reader& samples = batch_bytes) {
  const auto model = five_layers();
  auto state = fresh_state(adam(), parameters_of(*model));
  for (std::uint64_t e = 0; e < epochs; ++e) {
    const auto bytes = samples(e * batch, batch);
    const auto at = state.parameters.floats();
    auto sum =
        whole(*model, {at.begin(), at.end()}, {bytes.bytes().begin(), bytes.bytes().end()}, batch)
            .gradient;
    for (auto& value : sum) value /= static_cast<float>(batch);
    state = step_from(state, adam(), payload(std::move(sum)), model->layout());
    state.epoch = e + 1;
  }
  const auto out = state.parameters.floats();
  return {out.begin(), out.end()};
}

/// Each step of each stage has each sample of its batch once, for each hop of the stage.
void check_counts(const pipeline_lab& lab) {
  std::set<std::pair<std::uint64_t, std::uint32_t>> made;
  for (const auto& [peer, seen] : lab.world.observed<stage_stepped>()) {
    made.emplace(seen.epoch, seen.stage);
    CHECK(seen.counted == batch * lab.cut->hops_of(seen.stage));
  }
  CHECK(made.size() == lab.how.epochs * lab.cut->stages());
  CHECK(lab.world.observed<batch_trained>().size() == lab.how.epochs * lab.how.trainers);
  CHECK(lab.world.observed<misbehaved>().empty());
}

} // namespace

TEST_CASE("a pipeline learns what one machine learns") {
  const auto expected = alone();
  for (const std::uint32_t stages : {1U, 2U, 4U, 5U}) {
    CAPTURE(stages);
    pipeline_lab lab({.stages = stages});
    lab.run();
    CHECK(distance(lab.parameters(), expected) < 1e-6);
    check_counts(lab);
  }
}

TEST_CASE("two trainers share each batch") {
  const auto expected = alone();
  pipeline_lab lab({.trainers = 2});
  lab.run();
  CHECK(distance(lab.parameters(), expected) < 1e-6);
  check_counts(lab);
}

TEST_CASE("activations in 8 bits change little") {
  const auto expected = alone();
  pipeline_lab lab({.codec = kernels::codec::blockwise8});
  lab.run();
  const auto error = distance(lab.parameters(), expected);
  CHECK(error > 0);
  CHECK(error < 0.05);
}

TEST_CASE("a peer that dies at any point of the protocol costs no sample and no accuracy") {
  const auto expected = alone();
  std::vector<std::string_view> points(pipeline_probes::all.begin(), pipeline_probes::all.end());
  // The batch is closed at these points. The trainers compute the peer's gradients again.
  for (const auto point :
       {probes::matchmaking_begun, probes::matchmaking_joined, probes::matchmaking_led,
        probes::group_begun, probes::first_part_sent, probes::half_sent, probes::first_reduced,
        probes::half_replied, probes::voted, probes::before_commit})
    points.push_back(point);
  for (const auto point : points)
    for (const std::uint64_t nth : {1U, 5U, 9U, 14U}) {
      CAPTURE(point);
      CAPTURE(nth);
      pipeline_lab lab({.peers = {3, 3, 3, 3}});
      std::uint64_t count = 0;
      lab.world.on_probe = [&](mini_host& host, std::string_view at) {
        if (at == point && ++count == nth) host.kill();
      };
      lab.run();
      REQUIRE(count >= nth);
      CHECK(distance(lab.parameters(), expected) < 1e-6);
      check_counts(lab);
    }
}

TEST_CASE("answers that all come late are waited for") {
  // A forward task takes 40 s, and its first timeout is 30 s.
  pipeline_lab lab({.epochs = 2, .sample_time = 20s});
  lab.run(120min);
  CHECK(distance(lab.parameters(), alone(2)) < 1e-6);
  check_counts(lab);
}

TEST_CASE("a newcomer downloads the state of its stage and takes part") {
  const auto expected = alone();
  pipeline_lab lab({});
  while (lab.states[2]->epoch < 2) lab.world.run_for(100ms);
  const auto& late = lab.add_peer(2);
  lab.run();
  CHECK(distance(lab.parameters(), expected) < 1e-6);
  std::uint64_t bytes = 0, steps = 0;
  for (const auto& [peer, seen] : lab.world.observed<stage_joined>())
    if (peer == late.id()) bytes += seen.bytes;
  for (const auto& [peer, seen] : lab.world.observed<stage_stepped>()) steps += peer == late.id();
  CHECK(bytes == lab.states[2]->bytes());
  CHECK(steps >= 1);
}

TEST_CASE("a record that claims a later epoch and gives no state takes no state from a stage") {
  // Two peers are more than one liar. No stage is more than a step ahead of the others.
  for (const auto& [peers, ahead] : {std::pair<std::size_t, std::uint64_t>{2, 1}, {1, 1'000'000}}) {
    CAPTURE(ahead);
    pipeline_lab lab({.peers = {2, 2, peers, 2}, .epochs = 40});
    while (lab.states[2]->epoch < 1) lab.world.run_for(100ms);
    const auto before = lab.world.observed<stage_joined>().size();
    lab.claim(stage_record{2, lab.states[2]->epoch + ahead, {6, 6}, 0, 0, false, {}});
    lab.run(3min);
    CHECK(lab.world.observed<stage_joined>().size() == before);
    CHECK(lab.world.observed<stage_lost>().empty());
    CHECK(lab.world.observed<gradients_dropped>().empty());
  }
}

TEST_CASE("a host that claims a later epoch of its stage makes no trainer drop a batch") {
  pipeline_lab lab({});
  lab.claim(stage_record{2, 1'000'000, {6, 6}, 0, 0, false, {6, 6}});
  lab.run();
  CHECK(distance(lab.parameters(), alone()) < 1e-6);
  check_counts(lab);
}

TEST_CASE("a trainer that closes no batch holds the stages up less and less") {
  constexpr std::uint64_t epochs = 8;
  pipeline_lab lab({.epochs = epochs});
  lab.claim(trainer_record{0, 0, 1, {}});
  lab.run(3min);
  CHECK(distance(lab.parameters(), alone(epochs)) < 1e-6);
  check_counts(lab);
}

TEST_CASE("a newcomer takes no state from a donor that most of its stage contradict") {
  for (const bool announces_lie : {true, false}) {
    CAPTURE(announces_lie);
    pipeline_lab lab({.epochs = 40});
    const auto asked = lab.add_lying_donor(2, announces_lie);
    while (lab.states[2]->epoch < 2) lab.world.run_for(100ms);
    std::set<peer_id> late;
    for (int i = 0; i < 6; ++i) late.insert(lab.add_peer(2).id());
    lab.run();
    // All have the same state, that of one machine.
    CHECK(distance(lab.parameters(), alone(40)) < 1e-5);
    std::map<std::uint64_t, std::set<state_id>> states;
    for (const auto& [peer, seen] : lab.world.observed<stage_stepped>())
      if (seen.stage == 2) states[seen.epoch].insert(seen.after);
    for (const auto& [epoch, ids] : states) CHECK(ids.size() == 1);
    for (const auto& [peer, seen] : lab.world.observed<stage_joined>()) late.erase(peer);
    CHECK(late.empty());
    CHECK((*asked > 0) == !announces_lie);
    bool is_found_out = false; // by a newcomer; the liar itself knows few messages
    for (const auto& [peer, seen] : lab.world.observed<misbehaved>())
      is_found_out = is_found_out || seen.why.starts_with("a state other than");
    CHECK(is_found_out == !announces_lie);
  }
}

TEST_CASE("newcomers turn from a dead donor, whose record lives on, to another one") {
  pipeline_lab lab({.peers = {2, 2, 2, 2}, .epochs = 40});
  while (lab.states[2]->epoch < 2) lab.world.run_for(100ms);
  lab.peers[5]->kill();
  std::set<peer_id> late;
  for (int i = 0; i < 6; ++i) late.insert(lab.add_peer(2).id());
  lab.world.run_for(8s);
  std::set<peer_id> asked;
  for (const auto& [peer, seen] : lab.world.observed<phase_changed>())
    if (seen.phase == peer_phase::downloading) asked.insert(peer);
  CHECK(asked == late);
  for (const auto& [peer, seen] : lab.world.observed<stage_joined>()) late.erase(peer);
  CHECK(late.empty());
}

TEST_CASE("a death after the end of a batch holds up its own stage, and that stage not for long") {
  pipeline_lab lab({.epochs = 2, .sample_time = 1s, .record_lifetime = 10min});
  // The record of the dead peer says for long that it has gradients.
  auto& victim = *lab.peers.back();
  std::optional<duration> killed;
  lab.world.on_probe = [&](mini_host& host, std::string_view at) {
    if (&host != &victim || at != probes::matchmaking_begun || killed) return;
    killed = lab.world.now();
    host.kill();
  };
  while (!killed) lab.world.run_for(20ms);
  const auto has_stepped = [&](std::uint32_t stage) { return lab.states[stage]->epoch > 0; };
  const auto wait = [&](std::uint32_t stage) {
    while (!has_stepped(stage)) lab.world.run_for(20ms);
    return lab.world.now() - *killed;
  };
  CHECK(std::max({wait(0), wait(1), wait(2)}) < 5s);
  CHECK(!has_stepped(3));
  CHECK(wait(3) < 50s);
  CHECK(lab.world.observed<batch_reopened>().size() == 1);
  lab.run();
  CHECK(distance(lab.parameters(), alone(2)) < 1e-6);
  check_counts(lab);
}

TEST_CASE(
    "two peers of each stage write its summary, also while the swarm begins and after a death") {
  pipeline_lab lab({.peers = {6, 5, 4, 1}, .epochs = 200});
  const auto writers = [&] {
    std::map<std::uint32_t, std::size_t> out;
    for (const auto& each : lab.read(summaries_key("r")).records)
      ++out[stage_summary::unpack(each->value).value().stage];
    return out;
  };
  using counts = std::map<std::uint32_t, std::size_t>;
  lab.world.run_for(2s);
  CHECK(writers() == counts{{0, 2}, {1, 2}, {2, 2}, {3, 1}});
  // The peers with the lowest numbers are the writers.
  lab.peers[0]->kill();
  lab.world.run_for(30s);
  CHECK(writers() == counts{{0, 2}, {1, 2}, {2, 2}, {3, 1}});
}

TEST_CASE("a peer of an idle stage moves to the stage that all wait for") {
  constexpr std::uint64_t epochs = 20;
  pipeline_lab lab(
      {.peers = {1, 2, 2, 5}, .epochs = epochs, .rebalance_every = 4s, .sample_time = 100ms});
  lab.run(60min);
  CHECK(distance(lab.parameters(), alone(epochs)) < 1e-6);
  const auto moves = lab.world.observed<stage_left>();
  REQUIRE(!moves.empty());
  // Stage 0 has two hops and one peer.
  CHECK(moves.front().second.to == 0);
  CHECK(moves.front().second.from != 0);
  std::map<std::uint32_t, std::set<peer_id>> last;
  for (const auto& [peer, seen] : lab.world.observed<stage_stepped>()) {
    CHECK(seen.members > 0);
    if (seen.epoch == epochs) last[seen.stage].insert(peer);
  }
  CHECK(last[0].size() > 1);
  CHECK(last.size() == 4);
  // A peer that has moved waits until its new stage has made the step, too.
  std::map<peer_id, std::uint64_t> reached;
  for (const auto& [peer, seen] : lab.world.observed<stage_joined>()) {
    CHECK(seen.epoch >= reached[peer]);
    reached[peer] = seen.epoch;
  }
}
