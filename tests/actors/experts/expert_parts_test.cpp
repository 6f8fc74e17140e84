// The plain parts of experts: batches, the log of requests, copies of states, records.
#include "actors/experts/expert_batch.hpp"
#include "actors/experts/expert_record.hpp"
#include "actors/experts/request_log.hpp"
#include "kernels/base/rng.hpp"
#include "kernels/learn/feed_forward.hpp"
#include "tests/actors/support/mini_world.hpp"

#include <doctest/doctest.h>

#include <limits>

using namespace shoal;
using namespace shoal::actors;
using namespace std::chrono_literals;

namespace {

expert_task task_of(std::uint64_t request, std::size_t rows, bool backward) {
  expert_task out;
  out.request = request;
  out.x.assign(rows * 2, 1);
  if (backward) out.gradient = out.x;
  return out;
}

std::vector<std::uint64_t> requests_of(const task_pools::batch& batch) {
  std::vector<std::uint64_t> out;
  for (const auto& each : batch.tasks) out.push_back(each.request);
  return out;
}

} // namespace

TEST_CASE("a batch has the oldest requests of one expert and one direction") {
  const expert_id a{0, {1}}, b{0, {2}};
  task_pools pools(2, 4, {100, 10'000});
  pools.add(a, task_of(1, 2, false));
  pools.add(b, task_of(2, 9, false));
  pools.add(a, task_of(3, 1, true));
  pools.add(a, task_of(4, 2, false));
  pools.add(a, task_of(5, 1, false));
  CHECK(pools.waiting() == 5);
  // Requests 1 and 4 have four rows, so request 5 waits.
  const auto first = pools.next();
  REQUIRE(first);
  CHECK(first->which == a);
  CHECK_FALSE(first->backward);
  CHECK(requests_of(*first) == std::vector<std::uint64_t>{1, 4});
  // A single request may have more rows than a batch of several.
  CHECK(requests_of(*pools.next()) == std::vector<std::uint64_t>{2});
  const auto third = pools.next();
  CHECK(third->backward);
  CHECK(requests_of(*third) == std::vector<std::uint64_t>{3});
  CHECK(requests_of(*pools.next()) == std::vector<std::uint64_t>{5});
  CHECK_FALSE(pools.next());
  CHECK(pools.waiting() == 0);
}

TEST_CASE("an expert that leaves takes its requests out of the pools") {
  const expert_id a{0, {1}}, b{1, {1}};
  task_pools pools(2, 4, {12, 10'000});
  pools.add(a, task_of(1, 1, false));
  pools.add(b, task_of(2, 1, false));
  pools.add(a, task_of(3, 1, true));
  CHECK_FALSE(pools.has_room(task_of(4, 1, false))); // a quarter of the places is this client's
  CHECK(pools.drop(a).size() == 2);
  CHECK(pools.has_room(task_of(4, 1, false)));
  CHECK(requests_of(*pools.next()) == std::vector<std::uint64_t>{2});
  CHECK_FALSE(pools.next());
}

TEST_CASE("a repeated request is seen while it runs and answered from the log afterwards") {
  using seen = request_log::seen;
  request_log log(3, 1000);
  CHECK(log.begin({1, 7}) == seen::no);
  CHECK(log.begin({1, 7}) == seen::underway);
  CHECK(log.begin({2, 7}) == seen::no); // another host's number
  log.refused({2, 7});
  CHECK(log.begin({2, 7}) == seen::no);
  log.done({1, 7}, payload{std::vector<float>{1, 2}});
  CHECK(log.begin({1, 7}) == seen::answered);
  CHECK(log.answer({1, 7}).size() == 8);
}

TEST_CASE("the log of requests keeps to its bounds however many come") {
  request_log log(16, 400);
  for (std::uint64_t n = 0; n < 1000; ++n) {
    log.begin({1, n});
    log.done({1, n}, payload{std::vector<float>(10)});
    REQUIRE(log.size() <= 16);
    REQUIRE(log.bytes() <= 400);
  }
  CHECK(log.begin({1, 999}) == request_log::seen::answered);
  CHECK(log.begin({1, 0}) == request_log::seen::no);
}

TEST_CASE("a backward batch makes one step with the sum of its gradients") {
  const auto block = learn::make_feed_forward(4);
  auto state = std::make_shared<expert_state>();
  state->parameters = block->initial_parameters(1);
  state->optimizer.resize(kernels::amsgrad_state_size(state->parameters.size()));
  auto random = stream(1, "batch");
  expert_work work;
  work.block = block;
  work.state = state;
  work.batch.backward = true;
  std::vector<float> x, gradient;
  for (std::uint64_t n = 0; n < 3; ++n) {
    expert_task task;
    for (std::size_t i = 0; i < 4 * (n + 1); ++i) {
      task.x.push_back(static_cast<float>(random.normal()));
      task.gradient.push_back(static_cast<float>(random.normal()));
    }
    x.insert(x.end(), task.x.begin(), task.x.end());
    gradient.insert(gradient.end(), task.gradient.begin(), task.gradient.end());
    work.batch.tasks.push_back(std::move(task));
  }
  compute(work);
  // The same by hand: the local gradient, and a step.
  expert_state expected = *state;
  std::vector<float> sum(expected.parameters.size());
  const auto of_x = block->backward(expected.parameters, x, gradient, sum).value();
  kernels::amsgrad_step({}, 1, sum, expected.parameters, expected.optimizer);
  CHECK(work.state->steps == 1);
  CHECK(work.state->parameters == expected.parameters);
  CHECK(work.state->optimizer == expected.optimizer);
  REQUIRE(work.results.size() == 3);
  std::vector<float> together;
  for (const auto& each : work.results) together.insert(together.end(), each.begin(), each.end());
  CHECK(together == of_x);
  CHECK(state->steps == 0);
}

TEST_CASE("a batch whose values overflow leaves the expert as it was") {
  const auto block = learn::make_feed_forward(4);
  auto state = std::make_shared<expert_state>();
  state->parameters = block->initial_parameters(1);
  state->optimizer.resize(kernels::amsgrad_state_size(state->parameters.size()));
  expert_work work;
  work.block = block;
  work.state = state;
  work.batch.backward = true;
  expert_task task;
  task.x.assign(4, 1);
  task.gradient.assign(4, 3e38F);
  work.batch.tasks.push_back(std::move(task));
  compute(work);
  CHECK(work.results.front().empty());
  CHECK(work.state == state);
}

TEST_CASE("a trainer's huge values cost the other trainers of a batch no answer") {
  for (const bool backward : {false, true}) {
    const auto block = learn::make_feed_forward(4);
    auto state = std::make_shared<expert_state>();
    state->parameters = block->initial_parameters(1);
    state->optimizer.resize(kernels::amsgrad_state_size(state->parameters.size()));
    expert_work all, honest;
    for (auto* work : {&all, &honest}) {
      work->block = block;
      work->state = state;
      work->batch.backward = backward;
      for (const float size : {1.0F, 3e38F, 2.0F}) {
        if (size > 2 && work == &honest) continue;
        expert_task task;
        task.x = {size, -size, size, 1};
        if (backward) task.gradient.assign(4, size);
        work->batch.tasks.push_back(std::move(task));
      }
      compute(*work);
    }
    REQUIRE(all.results.size() == 3);
    CHECK(all.results[0] == honest.results[0]);
    CHECK(all.results[1].empty());
    CHECK(all.results[2] == honest.results[1]);
    CHECK(!all.results[0].empty());
    CHECK(all.state->parameters == honest.state->parameters);
    CHECK(all.state->steps == (backward ? 1 : 0));
  }
}

TEST_CASE("a copy of an expert has all bits and a wrong one is refused") {
  expert_state state;
  state.steps = 5;
  state.parameters = {1, -2};
  state.optimizer = {0.5F, -1, 2, 3, 4, 5};
  const auto packed = state.pack();
  const auto back = expert_state::unpack(packed, 2, 5);
  REQUIRE(back);
  CHECK(back->parameters == state.parameters);
  CHECK(back->optimizer == state.optimizer);
  CHECK(back->steps == 5);
  CHECK_FALSE(expert_state::unpack(packed, 3, 5));
  CHECK_FALSE(expert_state::unpack(payload::size_only(32), 2, 5));
  state.parameters[0] = std::numeric_limits<float>::infinity();
  CHECK_FALSE(expert_state::unpack(state.pack(), 2, 5));
  state.parameters[0] = 1;
  state.optimizer[2] = -1; // a second moment
  CHECK_FALSE(expert_state::unpack(state.pack(), 2, 5));
  CHECK(expert_state::unpack(state.pack(100), 0, 5, 100));
  CHECK_FALSE(expert_state::unpack(state.pack(100), 0, 5, 99));
}

TEST_CASE("records of coordinates read back and other bytes do not") {
  const std::vector<live_coordinate> some{{3, 70}, {4'000'000'000, 1}};
  CHECK(unpack_coordinates(pack_coordinates(some)) == some);
  CHECK(unpack_coordinates(pack_coordinates({}))->empty());
  CHECK_FALSE(unpack_coordinates(payload{std::vector<std::byte>(13)}));
  CHECK_FALSE(unpack_coordinates(payload::size_only(12)));
  CHECK(prefix_key("m", 2, {14, 3}) == "experts.m.2.14.3");
  CHECK(prefix_key("m", 2, {}) == "experts.m.2");
}

TEST_CASE("a client's cache counts records until they expire and leaves failed hosts alone") {
  using namespace shoal::actors::testing;
  mini_world world;
  auto& reader = world.add_host("reader");
  expert_cache cache({});
  const expert_id root{0, {}};
  CHECK(cache.needs(root, 0s));
  const auto utc = mini_world::utc_start_ns;
  found answer;
  std::vector<peer_id> peers;
  for (int n = 0; n < 2; ++n) {
    auto& host = world.add_host("server");
    auto log = std::make_shared<collector<tick>::log>();
    const auto actor = world.spawn<collector<tick>>(host, log);
    peers.push_back(host.id());
    record entry;
    entry.address = actor;
    entry.expires_utc_ns = utc + (n == 0 ? 10 : 60) * 1'000'000'000LL;
    entry.value = pack_coordinates({{5, n == 0 ? 9U : 4U}, {n == 0 ? 1U : 2U, 0}});
    answer.records.emplace_back(entry);
  }
  cache.read(root, answer, reader, 0s);
  CHECK_FALSE(cache.needs(root, 29s));
  CHECK(cache.needs(root, 30s));
  CHECK(cache.alive(root, utc, 0s) == std::vector<std::uint32_t>{1, 2, 5});
  // The host with more steps has the expert.
  CHECK(cache.holder({0, {5}}, utc, 0s)->peer == peers[0]);
  const auto later = utc + 11'000'000'000LL;
  CHECK(cache.alive(root, later, 11s) == std::vector<std::uint32_t>{2, 5});
  CHECK(cache.holder({0, {5}}, later, 11s)->peer == peers[1]);
  cache.hosts().failed(peers[0], 0s);
  CHECK(cache.holder({0, {5}}, utc, 1s)->peer == peers[1]);
  CHECK(cache.holder({0, {5}}, utc, 15s)->peer == peers[0]);
  cache.hosts().silent(peers[0]);
  CHECK(cache.holder({0, {5}}, utc, 15s)->peer == peers[1]);
  cache.hosts().heard(peers[0]);
  CHECK(cache.holder({0, {5}}, utc, 15s)->peer == peers[0]);
  cache.hosts().silent(peers[1]);
  cache.hosts().gone(peers[1], utc);
  CHECK(cache.alive(root, later, 15s).empty());
  cache.hosts().gone(peers[1], utc - 1); // the record is a later one
  CHECK(cache.alive(root, later, 15s) == std::vector<std::uint32_t>{2, 5});
  CHECK_FALSE(cache.holder({0, {}}, utc, 0s));
  CHECK_FALSE(cache.holder({0, {7}}, utc, 0s));
  cache.read(root, {}, reader, 20s);
  CHECK(cache.needs(root, 25s)); // an empty dictionary is read sooner
}
