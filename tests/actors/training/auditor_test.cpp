#include "actors/data/data_shard.hpp"
#include "actors/dht/dht_node.hpp"
#include "actors/training/auditor.hpp"
#include "actors/training/observations.hpp"
#include "actors/training/peer.hpp"
#include "tests/actors/support/mini_world.hpp"

#include <caf/send.hpp>
#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <vector>

using namespace shoal;
using namespace shoal::actors;
using namespace shoal::actors::testing;
using namespace std::chrono_literals;

namespace {

using ranges = std::vector<sample_range>;

std::shared_ptr<const recomputation> about(ranges blocks, std::uint64_t weight,
                                           state_id state = {}) {
  recomputation out;
  out.group = {4, 4};
  out.state = state;
  out.target = 3;
  out.weight = weight;
  out.blocks = std::move(blocks);
  return std::make_shared<const recomputation>(std::move(out));
}

const state_ptr some_state = std::make_shared<const model_state>();

/// The bytes of samples of two bytes each, which have their index.
payload sample_bytes(const sample_range& range) {
  std::vector<std::byte> out;
  for (auto i = range.first; i < range.end(); ++i)
    out.insert(out.end(), 2, static_cast<std::byte>(i));
  return payload{std::move(out)};
}

auditor fresh() {
  return auditor({.sample_bytes = 2, .size_only = false, .ask_again = 5s, .give_up = 30s});
}

} // namespace

TEST_CASE("auditor: blocks keep their order and their bounds, whatever the copies look like") {
  auto a = fresh();
  REQUIRE(a.add(about({{8, 2}, {4, 4}, {20, 1}}, 7), {}, some_state, 0s));
  CHECK(a.wanted(0s) == ranges{{4, 6}, {20, 1}});
  CHECK(a.wanted(1s).empty());
  CHECK(!a.came({4, 3}, sample_bytes({4, 3})));
  CHECK(!a.came({4, 3}, sample_bytes({4, 3}))); // a copy of a copy
  CHECK(!a.came({100, 3}, sample_bytes({100, 3})));
  CHECK(!a.next());
  CHECK(!a.came({7, 3}, sample_bytes({7, 3})));
  CHECK(a.wanted(5s) == ranges{{20, 1}});
  CHECK(a.came({20, 1}, sample_bytes({20, 1})));
  const auto task = a.next();
  REQUIRE(task);
  REQUIRE(task->blocks.size() == 3);
  const ranges order{{8, 2}, {4, 4}, {20, 1}};
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(task->blocks[i].range == order[i]);
    const auto right = sample_bytes(order[i]);
    const auto bytes = task->blocks[i].data.bytes(), expected = right.bytes();
    CHECK(std::vector(bytes.begin(), bytes.end()) == std::vector(expected.begin(), expected.end()));
  }
  CHECK(!a.waits());
}

TEST_CASE("auditor: overlapping claims are asked for once, and malformed ones are refused") {
  auto a = fresh();
  CHECK(a.add(about({{0, 4}}, 4), {}, some_state, 0s));
  CHECK(a.add(about({{2, 6}, {0, 1}}, 7), {}, some_state, 0s));
  CHECK(a.wanted(0s) == ranges{{0, 8}});
  CHECK(a.came({0, 8}, sample_bytes({0, 8})));
  CHECK(a.next()->blocks.size() == 1);
  CHECK(a.next()->blocks.size() == 2);
  CHECK(!a.next());

  CHECK(!a.add(about({}, 0), {}, some_state, 0s));
  CHECK(!a.add(about({{0, 4}}, 5), {}, some_state, 0s)); // another weight
  CHECK(!a.add(about({{0, 4}, {3, 1}}, 5), {}, some_state, 0s));
  CHECK(!a.add(about({{0, 4}}, 4), {}, nullptr, 0s)); // the state is gone
  CHECK(!a.add(about({{0, 1u << 31}}, 1u << 31), {}, some_state, 0s));
  // Copies of another size than the workload's.
  REQUIRE(a.add(about({{0, 4}}, 4), {}, some_state, 0s));
  CHECK(!a.came({0, 4}, sample_bytes({0, 3})));
  CHECK(!a.came({0, 4}, payload::size_only(8)));
  CHECK(!a.came({~std::uint64_t{0}, 4}, sample_bytes({0, 4})));
  CHECK(!a.next());
}

TEST_CASE("auditor: tasks whose samples do not come are given up, and their number has a bound") {
  auto a = fresh();
  for (std::size_t i = 0; i < auditor::most_tasks; ++i)
    CHECK(a.add(about({{4 * i, 4}}, 4), {}, some_state, 0s));
  CHECK(!a.add(about({{0, 4}}, 4), {}, some_state, 0s));
  CHECK(a.expired(29s).empty());
  CHECK(a.came({0, 4}, sample_bytes({0, 4})));
  CHECK(a.expired(30s).size() == auditor::most_tasks - 1);
  CHECK(a.next()); // a complete one stays
  CHECK(a.expired(60s).empty());
}

TEST_CASE("auditor: a complete task is given up when its round does not wait for it any more") {
  auto a = fresh();
  for (const std::uint64_t first : {0, 4}) {
    REQUIRE(a.add(about({{first, 4}}, 4), {}, some_state, 5s));
    REQUIRE(a.came({first, 4}, sample_bytes({first, 4})));
  }
  const auto begun = a.next();
  REQUIRE(begun);
  CHECK(a.expired(64s).empty());
  CHECK(!a.is_late(*begun, 64s));
  CHECK(a.expired(65s).size() == 1);
  CHECK(a.is_late(*begun, 65s));
  CHECK(!a.next());
}

namespace {

struct numbers final : sample_source {
  std::uint32_t sample_bytes() const override { return 4; }
  void read(std::uint64_t index, std::span<std::byte> out) const override {
    std::fill(out.begin(), out.end(), static_cast<std::byte>(index));
  }
  bool is_size_only() const override { return false; }
};

/// The gradient depends on the state, and on the order and the bounds of the blocks.
class delicate_work final : public workload {
public:
  mutable std::vector<payload> parameters; ///< after each step

  std::uint64_t value_count() const override { return 8; }
  std::uint64_t sample_bytes() const override { return 4; }
  model_state initial() const override {
    model_state out;
    out.parameters = payload{std::vector<float>(8)};
    return out;
  }
  double accumulate(const model_state& at, std::span<const std::byte> samples, std::uint64_t count,
                    std::span<double> sum) const override {
    double of_block = 0;
    for (std::uint64_t i = 0; i < count; ++i)
      of_block += 1.0 / (3 + static_cast<double>(samples[4 * i]));
    for (std::size_t k = 0; k < sum.size(); ++k)
      sum[k] = sum[k] * 1.0009765625 + of_block + static_cast<double>(at.parameters.floats()[k]);
    return 0;
  }
  model_state step(const model_state& at, const payload& mean) const override {
    auto out = at;
    const auto before = at.parameters.floats();
    std::vector<float> after(before.begin(), before.end());
    for (std::size_t i = 0; i < after.size(); ++i) after[i] += mean.floats()[i];
    out.parameters = payload{std::move(after)};
    ++out.step;
    parameters.push_back(out.parameters);
    return out;
  }
};

/// A peer that trains alone, and an actor on its host that asks for contributions.
struct lab {
  mini_world world;
  mini_host &home = world.add_host("shard"), &host = world.add_host("trainer");
  std::shared_ptr<delicate_work> work = std::make_shared<delicate_work>();
  std::shared_ptr<collector<audit_done>::log> answers =
      std::make_shared<collector<audit_done>::log>();
  caf::actor trainer, asking;

  lab() {
    const auto first = world.spawn<dht_node>(home, dht_config{});
    data_shard_config data;
    data.dht = first;
    world.spawn<data_shard>(home, data, std::make_shared<numbers>(),
                            std::make_shared<sample_ledger>(data.lease_time));
    dht_config dht;
    dht.bootstraps = {first};
    peer_config options;
    options.device.samples_per_second = 16;
    options.target_batch = 64;
    options.averaging.matchmaking_time = 1s;
    options.averaging.guard = std::make_shared<const guard_options>();
    trainer = world.spawn<peer>(host, options, std::make_shared<state_pool>(work),
                                world.spawn<dht_node>(host, dht));
    asking = world.spawn<collector<audit_done>>(host, answers);
  }
  void ask(std::shared_ptr<const recomputation> what) {
    caf::send_as(asking, trainer, audit_duty{std::move(what)});
  }
  const std::vector<audit_done>& got() { return std::get<0>(*answers); }
};

} // namespace

TEST_CASE("a peer computes the contribution of another again to the last bit") {
  lab t;
  t.world.run_for(1min);
  REQUIRE(t.got().empty());
  const auto steps = t.world.observed<stepped>();
  REQUIRE(steps.size() >= 3);
  // The state before the last step, which the peer has left.
  const auto& last = steps.back().second;
  const ranges blocks{{40, 8}, {7, 3}, {10, 5}};
  t.ask(about(blocks, 16, last.before));
  t.ask(about({{0, 4}}, 4, {99, 99})); // nobody has that state
  t.world.settle();
  REQUIRE(t.got().size() == 1);
  CHECK(!t.got()[0].computed);
  t.world.run_for(5s);
  REQUIRE(t.got().size() == 2);
  const auto& done = t.got()[1];
  CHECK(done.computed);
  CHECK(done.group == group_id{4, 4});
  CHECK(done.target == 3);

  // A plain loop over the same blocks, at the same state.
  model_state before;
  before.parameters = t.work->parameters.at(last.epoch - 2);
  std::vector<double> sum(8);
  numbers source;
  for (const auto& range : blocks) {
    std::vector<std::byte> bytes(range.count * 4);
    for (std::uint32_t i = 0; i < range.count; ++i)
      source.read(range.first + i, std::span(bytes).subspan(i * 4u, 4));
    t.work->accumulate(before, bytes, range.count, sum);
  }
  REQUIRE(done.values.size() == 32);
  for (std::size_t k = 0; k < 8; ++k)
    CHECK(done.values.floats()[k] == static_cast<float>(sum[k] / 16));
  CHECK(t.world.observed<misbehaved>().empty());
}

TEST_CASE(
    "auditor: a contribution is computed block by block, and equals one pass over its blocks") {
  const delicate_work work;
  auditor a({.sample_bytes = 4, .size_only = false, .ask_again = 5s, .give_up = 30s});
  const auto at = std::make_shared<const model_state>(work.initial());
  REQUIRE(a.add(about({{8, 2}, {4, 4}, {20, 1}}, 7), {}, at, 0s));
  std::vector<double> sum(work.value_count());
  for (const sample_range range : {sample_range{8, 2}, {4, 4}, {20, 1}}) {
    std::vector<std::byte> bytes(range.count * 4);
    for (std::uint64_t i = 0; i < range.count; ++i)
      numbers{}.read(range.first + i, std::span(bytes).subspan(4 * i, 4));
    work.accumulate(*at, bytes, range.count, sum);
    a.came(range, payload{std::move(bytes)});
  }
  auto task = a.next();
  REQUIRE(task);
  recomputing again(std::move(*task));
  std::vector<std::uint64_t> counts;
  while (!again.done()) {
    counts.push_back(again.next_samples());
    again.compute_next(work);
  }
  CHECK(counts == std::vector<std::uint64_t>{2, 4, 1});
  const auto mean = again.take(), expected = mean_gradient(sum, 7);
  CHECK(std::ranges::equal(mean.floats(), expected.floats()));
}
