// Peers of DiLoCo in a world without delay: the parameter histories of torchft's regression test,
// and a plain loop for what torchft does otherwise.
//
// Figures: pytorch/torchft (BSD 3-Clause), torchft/diloco_regression_test.py and
// test_fixtures/torchft.diloco_regression_test.DiLoCoMockedUpdateTest.*.json at commit
// 73dafea422116b2a713542719c8454efe5444c6c. Two replicas have two layers of one weight, 1 at
// first. Each gradient is 2, the inner rate is 1, and the outer rate is 2 without momentum. A
// fragment is a layer, and has a round each 6 local steps.
#include "actors/data/data_shard.hpp"
#include "actors/dht/dht_node.hpp"
#include "actors/training/diloco_peer.hpp"
#include "actors/training/observations.hpp"
#include "actors/training/optimizer_step.hpp"
#include "tests/actors/support/mini_world.hpp"

#include <doctest/doctest.h>

#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

using namespace shoal;
using namespace shoal::actors;
using namespace shoal::actors::testing;
using namespace std::chrono_literals;

namespace {

struct nothing final : sample_source {
  std::uint32_t sample_bytes() const override { return 4; }
  void read(std::uint64_t, std::span<std::byte> out) const override {
    std::fill(out.begin(), out.end(), std::byte{});
  }
  bool is_size_only() const override { return false; }
};

/// By layer.
using history = std::array<std::vector<float>, 2>;

/// torchft's model: each gradient is 2. The model keeps the parameters of each gradient.
class twos final : public workload {
public:
  explicit twos(std::shared_ptr<history> into) : asked_(std::move(into)) {}

  std::uint64_t value_count() const override { return 2; }
  std::vector<kernels::tensor_slot> layout() const override {
    return {{"layer0.weight", 0, {1, 1}}, {"layer1.weight", 1, {1, 1}}};
  }
  std::uint64_t sample_bytes() const override { return 4; }
  model_state initial() const override { return fresh_state(inner, {1, 1}); }
  double accumulate(const model_state& at, std::span<const std::byte>, std::uint64_t count,
                    std::span<double> sum) const override {
    for (std::size_t i = 0; i < 2; ++i) {
      (*asked_)[i].push_back(at.parameters.floats()[i]);
      sum[i] += 2 * static_cast<double>(count);
    }
    return 0;
  }
  model_state step(const model_state& at, const payload& mean) const override {
    return step_from(at, inner, mean);
  }

private:
  static constexpr kernels::optimizer_config inner{.kind = kernels::optimizer_kind::sgd,
                                                   .learning_rate = 1};
  std::shared_ptr<history> asked_;
};

struct replica {
  mini_host* host = nullptr;
  std::shared_ptr<history> locals = std::make_shared<history>(); // before each local step
  std::map<std::uint64_t, std::array<float, 2>> outers;          // by epoch
};

class swarm {
public:
  explicit swarm(diloco_workload::settings how) : how_(how) {
    auto& home = world.add_host("shard");
    first_ = world.spawn<dht_node>(home, dht_config{});
    data_shard_config data;
    data.dht = first_;
    world.spawn<data_shard>(home, data, std::make_shared<nothing>(),
                            std::make_shared<sample_ledger>(data.lease_time));
  }

  /// Local steps take a second.
  std::shared_ptr<replica> start(diloco_options rounds = {}) {
    auto out = std::make_shared<replica>();
    // Each host is a member of its own.
    out->host = &world.add_host("trainer-" + std::to_string(started_++));
    dht_config dht;
    dht.bootstraps = {first_};
    peer_config options;
    options.micro_batch = 1;
    options.device.samples_per_second = 1;
    options.device.step_time = duration{};
    options.min_refresh = 20ms;
    options.checkpoint_every = 1;
    options.on_checkpoint = [out](const state_ptr& state, std::uint64_t) {
      const auto x = state->parameters.floats();
      out->outers[state->epoch] = {x[0], x[1]};
    };
    auto work = diloco_workload::make(std::make_shared<twos>(out->locals), how_);
    REQUIRE(work);
    world.spawn<diloco_peer>(*out->host, options, std::move(rounds),
                             std::make_shared<state_pool>(*work),
                             world.spawn<dht_node>(*out->host, dht));
    return out;
  }

  mini_world world;

private:
  diloco_workload::settings how_;
  caf::actor first_;
  std::size_t started_ = 0;
};

diloco_workload::settings torchft(std::int64_t delay, double alpha) {
  diloco_workload::settings out;
  out.outer = {.learning_rate = 2, .momentum = 0};
  out.schedule = {.period = 6, .fragments = 2, .delay = delay, .alpha = alpha};
  return out;
}

history first(const history& of, std::size_t count) {
  history out;
  for (std::size_t i = 0; i < 2; ++i) {
    REQUIRE(of[i].size() >= count);
    out[i].assign(of[i].begin(), of[i].begin() + static_cast<std::ptrdiff_t>(count));
  }
  return out;
}

struct regression_case {
  std::int64_t delay;
  double alpha;
  history locals; // before local steps 1 to 16
  history outers; // before local steps 4, 7, 10 and 13
};

const std::vector<float> untouched{1,   -1,  -3,  -5,  -7,  -9,  -11, -13,
                                   -15, -17, -19, -21, -23, -25, -27, -29};

const std::vector<regression_case> cases{
    {0,
     0,
     {{{1, -1, -3, -11, -13, -15, -17, -19, -21, -35, -37, -39, -41, -43, -45, -59},
       {1, -1, -3, -5, -7, -9, -23, -25, -27, -29, -31, -33, -47, -49, -51, -53}}},
     {{{-11, -11, -35, -35}, {1, -23, -23, -47}}}},
    {0,
     0.5,
     {{{1, -1, -3, -8, -10, -12, -14, -16, -18, -24.5F, -26.5F, -28.5F, -30.5F, -32.5F, -34.5F,
        -40.25F},
       {1, -1, -3, -5, -7, -9, -17, -19, -21, -23, -25, -27, -32, -34, -36, -38}}},
     {{{-11, -11, -29, -29}, {1, -23, -23, -35}}}},
    {0, 1, {{untouched, untouched}}, {{{-11, -11, -23, -23}, {1, -23, -23, -23}}}},
    {1,
     0,
     {{{1, -1, -3, -7, -9, -11, -13, -15, -17, -27, -29, -31, -33, -35, -37, -47},
       {1, -1, -3, -5, -7, -9, -19, -21, -23, -25, -27, -29, -39, -41, -43, -45}}},
     {{{-7, -7, -27, -27}, {1, -19, -19, -39}}}},
    {1,
     0.5,
     {{{1, -1, -3, -6, -8, -10, -12, -14, -16, -21.5F, -23.5F, -25.5F, -27.5F, -29.5F, -31.5F,
        -35.75F},
       {1, -1, -3, -5, -7, -9, -15, -17, -19, -21, -23, -25, -29, -31, -33, -35}}},
     {{{-7, -7, -25, -25}, {1, -19, -19, -31}}}},
    {1, 1, {{untouched, untouched}}, {{{-7, -7, -23, -23}, {1, -19, -19, -23}}}},
};

/// DiLoCo with torchft's numbers in a plain loop. A newcomer takes over the outer parameters alone.
struct plain_replica {
  std::array<float, 2> local{1, 1}, outer{1, 1};
  history locals;

  void three_steps() {
    for (int step = 0; step < 3; ++step)
      for (std::size_t i = 0; i < 2; ++i) {
        locals[i].push_back(local[i]);
        local[i] -= 2;
      }
  }
};

void plain_round(std::size_t layer, const std::vector<plain_replica*>& members) {
  float mean = 0;
  for (const auto* one : members)
    mean += (one->outer[layer] - one->local[layer]) / static_cast<float>(members.size());
  for (auto* one : members) one->local[layer] = one->outer[layer] -= 2 * mean;
}

} // namespace

TEST_CASE("torchft's six histories of Streaming DiLoCo come out of two peers and their rounds") {
  for (const auto& expected : cases) {
    CAPTURE(expected.delay);
    CAPTURE(expected.alpha);
    swarm both(torchft(expected.delay, expected.alpha));
    const std::vector<std::shared_ptr<replica>> replicas{both.start(), both.start()};
    both.world.run_for(25s);
    for (const auto& one : replicas) {
      CHECK(first(*one->locals, 16) == expected.locals);
      for (std::uint64_t epoch = 1; epoch <= 4; ++epoch) {
        CAPTURE(epoch);
        REQUIRE(one->outers.contains(epoch));
        CHECK(one->outers[epoch][0] == expected.outers[0][epoch - 1]);
        CHECK(one->outers[epoch][1] == expected.outers[1][epoch - 1]);
      }
    }
    CHECK(both.world.observed<misbehaved>().empty());
  }
}

TEST_CASE("a peer that is replaced follows torchft's survivor until then, and afterwards the plain "
          "loop in which the newcomer has the outer parameters") {
  swarm both(torchft(0, 0));
  const auto survivor = both.start(), other = both.start();
  both.world.run_for(6500ms);
  REQUIRE(survivor->outers.contains(2));
  other->host->kill();
  const auto newcomer = both.start();
  both.world.run_for(20s);
  CHECK_FALSE(both.world.observed<download_ended>().empty());

  plain_replica a, b;
  for (std::size_t round = 0; round < 2; ++round) {
    a.three_steps(), b.three_steps();
    plain_round(round, {&a, &b});
  }
  b = plain_replica{a.outer, a.outer, {}};
  for (std::size_t round = 2; round < 7; ++round) {
    a.three_steps(), b.three_steps();
    plain_round(round % 2, {&a, &b});
  }
  CHECK(first(*survivor->locals, 6) == first(cases[0].locals, 6));
  CHECK(first(*survivor->locals, 21) == a.locals);
  CHECK(first(*newcomer->locals, 15) == b.locals);
}

TEST_CASE(
    "with a quorum of one a slow peer follows the others' outer steps and gives its own later") {
  diloco_workload::settings how;
  how.outer = {.learning_rate = 1, .momentum = 0};
  how.schedule = {.period = 3};
  swarm both(how);
  const auto a = both.start({.quorum = 1}), b = both.start({.quorum = 1});
  both.world.run_for(60s);
  std::size_t followed = 0, kept = 0;
  for (const auto& [who, what] : both.world.observed<adopted>()) {
    followed += what.beside ? 1 : 0;
    kept += what.keeps ? 1 : 0;
  }
  CHECK(followed == kept);
  CHECK(a->outers.size() + b->outers.size() > 20);
  CHECK(both.world.observed<misbehaved>().empty());
}
