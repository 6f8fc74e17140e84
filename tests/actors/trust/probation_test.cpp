#include "actors/trust/probation.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <deque>
#include <vector>

using namespace shoal;
using namespace shoal::actors;

namespace {

member_id member(std::uint64_t i) {
  return {i, i};
}

void add(std::deque<step_ptr>& to, std::size_t count, const std::vector<std::uint64_t>& members) {
  certified_step step;
  for (const auto m : members) step.supporters.push_back(member(m));
  std::sort(step.supporters.begin(), step.supporters.end());
  for (std::size_t i = 0; i < count; ++i)
    to.push_back(std::make_shared<const certified_step>(step));
}

} // namespace

TEST_CASE("probation: a newcomer is established after so many rounds") {
  std::deque<step_ptr> steps;
  add(steps, 100, {1, 2, 3});
  for (std::uint64_t rounds = 0; rounds < 10; ++rounds) {
    CAPTURE(rounds);
    CHECK(newcomers(steps, 10).has(member(4)));
    CHECK(!newcomers(steps, 10).has(member(1)));
    add(steps, 1, {1, 2, 4});
  }
  CHECK(!newcomers(steps, 10).has(member(4)));
  CHECK(!newcomers(steps, 10).has(member(3))); // from its earlier rounds
  CHECK(newcomers(steps, 10).has(member(5)));
  CHECK(!newcomers(steps, 0).has(member(5)));
}

TEST_CASE("probation: the first members need not wait for each other") {
  std::deque<step_ptr> steps;
  CHECK(!newcomers(steps, 10).has(member(1)));
  add(steps, 1, {1, 2});
  CHECK(!newcomers(steps, 10).has(member(1)));
  CHECK(newcomers(steps, 10).has(member(3)));
  add(steps, 1, {1, 3}); // member 2 missed a round
  CHECK(!newcomers(steps, 10).has(member(2)));
  CHECK(!newcomers(steps, 10).has(member(3)));
  add(steps, 3, {1});
  CHECK(newcomers(steps, 10).has(member(3)));
}

TEST_CASE("probation: a member that was away for long begins anew") {
  std::deque<step_ptr> steps;
  add(steps, 50, {1, 2});
  add(steps, newcomers::window - 10, {1});
  CHECK(!newcomers(steps, 10).has(member(2)));
  add(steps, 1, {1});
  CHECK(newcomers(steps, 10).has(member(2)));
}
