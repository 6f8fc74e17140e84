#include "actors/data/data_shard.hpp"
#include "actors/dht/dht_node.hpp"
#include "actors/training/moshpit_peer.hpp"
#include "actors/training/outer_rule.hpp"
#include "tests/actors/support/mini_world.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

using namespace shoal;
using namespace shoal::actors;
using namespace shoal::actors::testing;
using namespace std::chrono_literals;

namespace {

struct zeros final : sample_source {
  std::uint32_t sample_bytes() const override { return 4; }
  void read(std::uint64_t, std::span<std::byte> out) const override {
    std::fill(out.begin(), out.end(), std::byte{});
  }
  bool is_size_only() const override { return false; }
};

/// Each step subtracts one from each of four parameters. The repair of an averaged optimizer state
/// subtracts one.
class falling_work final : public workload {
public:
  std::uint64_t value_count() const override { return 4; }
  std::uint64_t sample_bytes() const override { return 4; }
  model_state initial() const override {
    model_state out;
    out.parameters = payload{std::vector<float>(4)};
    return out;
  }
  double accumulate(const model_state&, std::span<const std::byte>, std::uint64_t,
                    std::span<double>) const override {
    return 0;
  }
  model_state step(const model_state& at, const payload&) const override {
    model_state out; // a workload need not know of method_state
    out.epoch = at.epoch;
    out.id = at.id;
    std::vector<float> values(at.parameters.floats().begin(), at.parameters.floats().end());
    for (auto& each : values) each -= 1;
    out.parameters = payload{std::move(values)};
    out.step = at.step + 1;
    return out;
  }
  payload repaired(payload averaged) const override {
    if (averaged.is_size_only()) return averaged;
    std::vector<float> out(averaged.floats().begin(), averaged.floats().end());
    for (auto& each : out) each -= 1;
    return payload{std::move(out)};
  }
};

std::vector<float> floats(const payload& of) {
  return {of.floats().begin(), of.floats().end()};
}

model_state state_of(std::vector<float> parameters, std::vector<float> optimizer = {}) {
  model_state out;
  out.parameters = payload{std::move(parameters)};
  if (!optimizer.empty()) out.optimizer = payload{std::move(optimizer)};
  return out;
}

/// Outer momentum on the first half of the parameters. The contribution is a part of them, and the
/// rule has a method state.
class half_with_momentum final : public outer_rule {
public:
  struct seen {
    std::mutex guard;
    std::vector<std::size_t> remembered; // bytes of method_state before each round
  };
  explicit half_with_momentum(std::shared_ptr<seen> into) : seen_(std::move(into)) {}

  payload contribution(const model_state& own, const model_state& shared) const override {
    std::vector<float> out(2);
    for (std::size_t i = 0; i < 2; ++i)
      out[i] = shared.parameters.floats()[i] - own.parameters.floats()[i];
    return payload{std::move(out)};
  }
  result after(const averaged_round& round, const workload&) const override {
    const auto& before = round.shared.method_state;
    {
      std::lock_guard lock(seen_->guard);
      seen_->remembered.push_back(before.size());
    }
    std::vector<float> momentum(2), parameters = floats(round.now.parameters);
    for (std::size_t i = 0; i < 2; ++i) {
      momentum[i] = (before.empty() ? 0 : 0.5F * before.floats()[i]) + round.mean.floats()[i];
      parameters[i] = round.shared.parameters.floats()[i] - momentum[i];
    }
    auto next = round.now;
    next.parameters = payload{std::move(parameters)};
    next.method_state = payload{std::move(momentum)};
    return {next, next};
  }

private:
  std::shared_ptr<seen> seen_;
};

} // namespace

TEST_CASE(
    "delta rule: the next state is the mean plus the peer's own steps since the round began") {
  const delta_rule rule(false);
  const auto began = state_of({1, 2}), shared = state_of({0, 0});
  CHECK(floats(rule.contribution(began, shared)) == std::vector<float>{1, 2});
  const auto now = state_of({1.5, 2});
  const auto mean = payload{std::vector<float>{10, 20}};
  const auto next = rule.after({now, began, shared, mean}, falling_work{});
  CHECK(floats(next.shared.parameters) == std::vector<float>{10.5, 20});
  CHECK(floats(next.own.parameters) == std::vector<float>{10.5, 20});
}

TEST_CASE("delta rule: an averaged optimizer state is taken without a difference, and the workload "
          "repairs it") {
  const delta_rule rule(true);
  const auto began = state_of({1, 2}, {5}), shared = state_of({0, 0}, {4});
  CHECK(floats(rule.contribution(began, shared)) == std::vector<float>{1, 2, 5});
  const auto now = state_of({2, 2}, {7});
  const auto next =
      rule.after({now, began, shared, payload{std::vector<float>{10, 20, 30}}}, falling_work{});
  CHECK(floats(next.own.parameters) == std::vector<float>{11, 20});
  CHECK(floats(next.own.optimizer) == std::vector<float>{29});
}

TEST_CASE("delta rule: steps during the round that end in NaN do not reach the shared state") {
  const auto nan = std::numeric_limits<float>::quiet_NaN();
  const auto began = state_of({1, 2}, {5}), before = state_of({0, 0}, {4});
  const auto mean = payload{std::vector<float>{10, 20}};
  const delta_rule rule(false);
  for (const auto& now : {state_of({nan, 2}, {7}), state_of({1.5, 2}, {nan})}) {
    const auto next = rule.after({now, began, before, mean}, falling_work{});
    CHECK(floats(next.shared.parameters) == std::vector<float>{10, 20});
    CHECK(floats(next.shared.optimizer) == std::vector<float>{5});
  }
  // The rule averages the optimizer's state, too.
  const auto next = delta_rule(true).after(
      {state_of({nan, 2}, {nan}), began, before, payload{std::vector<float>{10, 20, 30}}},
      falling_work{});
  CHECK(floats(next.shared.parameters) == std::vector<float>{10, 20});
  CHECK(floats(next.shared.optimizer) == std::vector<float>{29});
}

TEST_CASE("delta rule: size-only states stay size-only") {
  const delta_rule rule(true);
  model_state size_only;
  size_only.parameters = payload::size_only(40);
  size_only.optimizer = payload::size_only(8);
  const auto given = rule.contribution(size_only, size_only);
  CHECK(given.is_size_only());
  CHECK(given.size() == 48);
  CHECK(
      rule.after({size_only, size_only, size_only, given}, falling_work{}).own.parameters.size() ==
      40);
}

TEST_CASE("an outer rule may average a part of the parameters, and its state goes to joiners and "
          "checkpoints") {
  mini_world world;
  auto& home = world.add_host("shard");
  const auto first = world.spawn<dht_node>(home, dht_config{});
  data_shard_config data;
  data.dht = first;
  world.spawn<data_shard>(home, data, std::make_shared<zeros>(),
                          std::make_shared<sample_ledger>(data.lease_time));
  std::size_t checkpoints = 0, remembered = 0, trainers = 0;
  const auto start = [&] {
    auto& host = world.add_host("trainer-" + std::to_string(trainers++)); // a member of its own
    dht_config dht;
    dht.bootstraps = {first};
    peer_config options;
    options.device.samples_per_second = 16;
    options.averaging.matchmaking_time = 1s;
    options.checkpoint_every = 1;
    options.on_checkpoint = [&](const state_ptr& state, std::uint64_t) {
      ++checkpoints;
      remembered += state->method_state.size() == 8 ? 1 : 0;
    };
    moshpit_options how;
    how.local_steps = 4;
    how.grid = {3, 1};
    auto seen = std::make_shared<half_with_momentum::seen>();
    world.spawn<moshpit_peer>(host, options, how, std::make_shared<half_with_momentum>(seen),
                              std::uint64_t{8},
                              std::make_shared<state_pool>(std::make_shared<falling_work>()),
                              world.spawn<dht_node>(host, dht));
    return seen;
  };
  const auto old = start();
  start();
  world.run_for(1min);
  REQUIRE(old->remembered.size() > 3);
  CHECK(old->remembered.front() == 0);
  CHECK(old->remembered.back() == 8);
  CHECK(checkpoints > 6);
  CHECK(remembered == checkpoints);
  const auto joiner = start();
  world.run_for(1min);
  REQUIRE_FALSE(joiner->remembered.empty());
  CHECK(joiner->remembered.front() == 8);
  CHECK_FALSE(world.observed<download_ended>().empty());
  CHECK(world.observed<misbehaved>().empty());
}
