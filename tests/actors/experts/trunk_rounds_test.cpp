// actors/experts/trunk_rounds: the times of rounds, their groups, and the delta rule.
#include "actors/experts/trunk_rounds.hpp"
#include "tests/actors/support/mini_world.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <memory>
#include <set>
#include <vector>

using namespace shoal;
using namespace shoal::actors;
using namespace shoal::actors::testing;
using namespace std::chrono_literals;

namespace {

trunk_rounds::trunk trunk_of(std::vector<float> values) {
  return std::make_shared<const std::vector<float>>(std::move(values));
}

round_result success(std::vector<float> mean, std::uint32_t member = 0) {
  round_result out;
  out.outcome = outcome::ok;
  out.values = payload{std::move(mean)};
  out.member = member;
  return out;
}

trunk_rounds rounds(std::uint64_t seed, kernels::grid grid = {3, 2}) {
  return {{grid, {}, {}}, 5s, rng(seed)};
}

} // namespace

TEST_CASE("rounds of trunks begin at the same time on all clocks") {
  const auto some = rounds(1);
  CHECK(some.until_next(12'000'000'000) == 3s);
  CHECK(some.until_next(15'000'000'000) == 5s);
  CHECK(some.until_next(14'999'999'999) == 1ns);
}

TEST_CASE("steps that a trainer made during a round stay in its trunk") {
  mini_world world;
  auto& here = world.add_host("trainer");
  auto some = rounds(1);
  const auto request = some.begin(here, trunk_of({1, 2, 3}), 7, {});
  CHECK(some.running());
  CHECK(request.epoch == 7);
  CHECK(request.weight == 1);
  CHECK(request.wanted == 3);
  CHECK(request.must_be_finite);
  CHECK(request.values.floats()[2] == 3);
  const auto next = some.end(success({10, 20, 30}), {1.5, 2, 2});
  REQUIRE(next);
  CHECK(*next == std::vector<float>{10.5, 20, 29});
  CHECK_FALSE(some.running());
}

TEST_CASE("a round that fails leaves the trunk as it is") {
  mini_world world;
  auto& here = world.add_host("trainer");
  auto some = rounds(1);
  some.begin(here, trunk_of({1, 2}), 0, {});
  CHECK_FALSE(some.end({}, {1, 2}));
  some.begin(here, trunk_of({1, 2}), 0, {});
  CHECK_FALSE(some.end(success({1, 2, 3}), {1, 2})); // the mean is that of another model
  CHECK_FALSE(some.running());
}

TEST_CASE("the members of a group are in different groups in the next round") {
  mini_world world;
  auto& here = world.add_host("trainer");
  std::set<state_id> first, second;
  for (std::uint32_t member = 0; member < 3; ++member) {
    auto one = rounds(4); // one seed: one place
    first.insert(one.begin(here, trunk_of({1}), 0, {}).state);
    REQUIRE(one.end(success({1}, member), {1}));
    second.insert(one.begin(here, trunk_of({1}), 0, {}).state);
  }
  CHECK(first.size() == 1);
  CHECK(second.size() == 3);
}
