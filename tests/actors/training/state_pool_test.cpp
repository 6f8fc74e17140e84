#include "actors/training/state_pool.hpp"
#include "tests/actors/support/certificates.hpp"
#include "tests/actors/support/mini_world.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <utility>
#include <vector>

using namespace shoal;
using namespace shoal::actors;
using namespace shoal::actors::testing;

namespace {

class counting_work final : public workload {
public:
  std::uint64_t value_count() const override { return 1; }
  std::uint64_t sample_bytes() const override { return 4; }
  model_state initial() const override {
    model_state out;
    out.parameters = payload{std::vector<float>(1)};
    return out;
  }
  double accumulate(const model_state&, std::span<const std::byte>, std::uint64_t,
                    std::span<double>) const override {
    return 0;
  }
  model_state step(const model_state& at, const payload& mean) const override {
    auto out = at;
    out.parameters = payload{std::vector<float>{at.parameters.floats()[0] + mean.floats()[0]}};
    return out;
  }
};

/// A pool, and five members that take steps in groups.
struct fixture {
  mini_world world;
  std::vector<signer> members;
  state_pool pool{std::make_shared<counting_work>()};
  std::vector<step_ptr> kept; // the pool alone does not keep proofs

  fixture() {
    using dummy = collector<int>;
    for (int i = 0; i < 5; ++i) {
      auto& host = world.add_host("peer " + std::to_string(i));
      members.push_back({&host, world.spawn<dummy>(host, std::make_shared<dummy::log>())});
    }
  }
  state_ptr step(const state_ptr& before, const std::vector<std::size_t>& who, float by) {
    std::vector<signer> group;
    for (const auto i : who) group.push_back(members[i]);
    const auto round =
        certify(group, {before->epoch, before->id}, {1, static_cast<std::uint64_t>(by)});
    kept.push_back(pool.shared_step(step_of(shared_copy(round))));
    auto next = pool.step(before, payload{std::vector<float>{by}}, kept.back()->after.state, 1);
    pool.offer(next);
    return next;
  }
};

} // namespace

TEST_CASE("state pool: the best state is on the branch that most members support") {
  for (const bool lone_first : {false, true}) {
    fixture f;
    auto lone = f.pool.initial(), many = f.pool.initial();
    const auto alone = [&] {
      for (int i = 0; i < 4; ++i) lone = f.step(lone, {0}, static_cast<float>(10 + i));
    };
    if (lone_first) alone();
    many = f.step(many, {1, 2, 3}, 1);
    many = f.step(many, {1, 2}, 2);
    if (!lone_first) alone();
    REQUIRE(lone->epoch == 4);
    CHECK(f.pool.best() == many);
  }
}

TEST_CASE("state pool: a computed step is the best state only after a peer has reached it") {
  for (const bool share : {true, false}) {
    state_pool pool(std::make_shared<counting_work>(), share);
    const auto first = pool.initial();
    const auto next = pool.step(first, payload{std::vector<float>{1}}, {5, 5}, 1);
    CHECK(pool.best()->id == first->id);
    pool.offer(next);
    CHECK(pool.best() == next);
  }
}

TEST_CASE("state pool: the latest state of one branch is the best, whatever comes late") {
  fixture f;
  const auto first = f.step(f.pool.initial(), {0, 1, 2}, 1);
  const auto second = f.step(first, {0, 1, 2}, 2);
  CHECK(f.pool.best() == second);
  f.pool.offer(first);
  CHECK(f.pool.best() == second);
}

TEST_CASE("state pool: states without proofs are compared by epoch and samples") {
  fixture f;
  auto made = [&](std::uint64_t epoch, std::uint64_t samples, std::uint64_t id) {
    auto out = *f.pool.initial();
    out.epoch = epoch;
    out.samples = samples;
    out.id = {7, id};
    return std::make_shared<const model_state>(std::move(out));
  };
  const auto more = made(3, 20, 1);
  f.pool.offer(made(3, 10, 2));
  f.pool.offer(more);
  f.pool.offer(made(2, 50, 3));
  CHECK(f.pool.best() == more);
}
