#include "actors/trust/chain.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace shoal;
using namespace shoal::actors;

namespace {

const chain_point initial{0, {1, 1}};

/// A step of these members after `before`. `group` tells two steps from one state apart.
step_ptr step_from(const chain_point& before, std::vector<std::uint64_t> members,
                   std::uint64_t group = 1) {
  certified_step out;
  out.before = before;
  out.after = {before.epoch + 1, state_after(before.state, {group, before.epoch}, {2, 2})};
  for (const auto m : members) out.supporters.push_back({m, m});
  return std::make_shared<const certified_step>(std::move(out));
}

/// `count` steps of these members.
std::vector<step_ptr> steps_from(chain_point at, std::size_t count,
                                 const std::vector<std::uint64_t>& members,
                                 std::uint64_t group = 1) {
  std::vector<step_ptr> out;
  for (std::size_t i = 0; i < count; ++i) {
    out.push_back(step_from(at, members, group));
    at = out.back()->after;
  }
  return out;
}

chain chain_of(std::size_t count) {
  chain out(initial);
  for (const auto& step : steps_from(initial, count, {1, 2})) REQUIRE(out.extend(step).ok());
  return out;
}

} // namespace

TEST_CASE("chain: the id of a state depends on the state before, the group and the version") {
  const auto id = state_after({1, 2}, {3, 4}, {5, 6});
  CHECK(id == state_after({1, 2}, {3, 4}, {5, 6}));
  CHECK(id != state_after({1, 9}, {3, 4}, {5, 6}));
  CHECK(id != state_after({1, 2}, {3, 9}, {5, 6}));
  CHECK(id != state_after({1, 2}, {3, 4}, {5, 9}));
}

TEST_CASE("chain: a step extends it only from its head, and only to the next epoch") {
  chain c(initial);
  const auto first = step_from(initial, {1});
  REQUIRE(c.extend(first).ok());
  CHECK(c.head() == first->after);
  CHECK_FALSE(c.extend(first).ok());
  auto skips = *step_from(c.head(), {1});
  skips.after.epoch += 1;
  CHECK_FALSE(c.extend(std::make_shared<const certified_step>(skips)).ok());
  auto other = *step_from(c.head(), {1});
  other.before.state.low += 1;
  CHECK_FALSE(c.extend(std::make_shared<const certified_step>(other)).ok());
  auto earlier = *step_from(c.head(), {1});
  earlier.before.epoch -= 1;
  CHECK_FALSE(c.extend(std::make_shared<const certified_step>(earlier)).ok());
  CHECK(c.head() == first->after);
}

TEST_CASE("chain: it contains exactly its states") {
  const auto c = chain_of(5);
  CHECK(c.contains(initial));
  CHECK_FALSE(c.contains({0, {9, 9}}));
  for (const auto& step : c.steps()) {
    CHECK(c.contains(step->after));
    CHECK(c.step_to(step->after.epoch) == step);
    auto wrong = step->after;
    wrong.state.low += 1;
    CHECK_FALSE(c.contains(wrong));
  }
  CHECK_FALSE(c.contains({6, {1, 1}}));
  CHECK(c.step_to(0) == nullptr);
  CHECK(c.step_to(6) == nullptr);
}

TEST_CASE("chain: the steps after a state, and a cut back to it") {
  auto c = chain_of(5);
  const auto third = c.step_to(3)->after;
  CHECK(c.after(third).size() == 2);
  CHECK(c.after(third).front()->before == third);
  c.cut(third);
  CHECK(c.head() == third);
  CHECK(c.after(initial).size() == 3);
}

TEST_CASE("chain: a locator names recent states closely, older ones sparsely, and the first one") {
  const auto c = chain_of(10000);
  const auto points = c.locator();
  CHECK(points.size() < 24);
  CHECK(points.size() <= chain::most_points);
  CHECK(points.front() == c.head());
  CHECK(points.back() == initial);
  CHECK(std::is_sorted(points.rbegin(), points.rend()));
  CHECK(chain_of(0).locator() == std::vector{initial});
}

TEST_CASE("chain: two chains find a common state close to their last one") {
  const auto ours = chain_of(100);
  chain theirs = chain_of(90);
  for (const auto& step : steps_from(theirs.head(), 30, {7}, 9)) REQUIRE(theirs.extend(step).ok());
  const auto common = theirs.common(ours.locator());
  REQUIRE(common);
  CHECK(ours.contains(*common));
  CHECK(common->epoch <= 90);
  CHECK(common->epoch >= 80);
  CHECK_FALSE(chain({0, {8, 8}}).common(ours.locator()));
}

TEST_CASE("chain: it forgets its older half when it is too long, and then begins later") {
  const auto c = chain_of(chain::most_steps + 3);
  CHECK(c.steps().size() < chain::most_steps);
  CHECK(c.start().epoch == chain::most_steps / 2);
  CHECK(c.head().epoch == chain::most_steps + 3);
  CHECK_FALSE(c.contains(initial));
  CHECK(c.contains(c.start()));
  CHECK(c.steps().front()->before == c.start());
  CHECK(c.step_to(c.start().epoch + 1) == c.steps().front());
}

TEST_CASE("fork rule: more supporters lead, however long the other chain is") {
  const auto honest = weight_of(initial, steps_from(initial, 2, {1, 2, 3}));
  const auto lone = weight_of(initial, steps_from(initial, 1000, {9}));
  CHECK(honest.supporters == 3);
  CHECK(lone.supporters == 1);
  CHECK(honest.leads(lone));
  CHECK_FALSE(lone.leads(honest));
}

TEST_CASE("fork rule: of equal supporters the longer chain leads, then the smaller id") {
  const auto longer = weight_of(initial, steps_from(initial, 3, {1, 2}));
  const auto shorter = weight_of(initial, steps_from(initial, 2, {3, 4}, 2));
  CHECK(longer.leads(shorter));
  CHECK_FALSE(shorter.leads(longer));
  const auto one = weight_of(initial, steps_from(initial, 2, {1, 2}));
  CHECK(one.leads(shorter) == (one.head < shorter.head));
  CHECK(one.leads(shorter) != shorter.leads(one));
  CHECK_FALSE(one.leads(one));
}

TEST_CASE("fork rule: a member supports a chain once, however many of its steps it signed") {
  auto steps = steps_from(initial, 2, {1, 2});
  steps.push_back(step_from(steps.back()->after, {2, 3}));
  CHECK(weight_of(initial, steps).supporters == 3);
  CHECK(weight_of(initial, {}).supporters == 0);
  CHECK(weight_of(initial, {}).head == initial.state);
}
