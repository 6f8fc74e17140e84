#include "scenarios/runner/run_goal.hpp"

#include <doctest/doctest.h>

#include <array>

using namespace shoal;
using namespace shoal::scenarios;
using namespace std::chrono_literals;

TEST_CASE("a run ends with the step to its last epoch, once") {
  run_goal goal;
  goal.begin(10, 0, false);
  CHECK(goal.epoch() == 10);
  CHECK_FALSE(goal.stepped(9, 1s));
  CHECK_FALSE(goal.reached());
  CHECK(goal.stepped(10, 2s));
  CHECK(goal.reached());
  CHECK_FALSE(goal.stepped(11, 3s));
  CHECK(goal.time() == 2s);
}

TEST_CASE("the earlier of the planned end and the wanted one counts") {
  for (const auto& [planned, limit, end] :
       {std::array<std::uint64_t, 3>{10, 4, 4}, {4, 10, 4}, {0, 7, 7}, {7, 0, 7}, {0, 0, 0}}) {
    run_goal goal;
    goal.begin(planned, limit, false);
    CHECK(goal.epoch() == end);
  }
}

TEST_CASE("training without an end is never over") {
  run_goal goal;
  goal.begin(0, 0, true);
  CHECK_FALSE(goal.stepped(1'000'000, 1s));
  CHECK_FALSE(goal.adopted(1'000'000, 1s));
  CHECK_FALSE(goal.committed(1'000'000, 1s));
  CHECK_FALSE(goal.reached());
}

TEST_CASE("one host of many also ends with a download or a commit of the last epoch; a whole swarm "
          "does not") {
  for (const bool one_host : {true, false}) {
    run_goal adopts, commits;
    adopts.begin(10, 0, one_host);
    commits.begin(10, 0, one_host);
    CHECK_FALSE(adopts.adopted(9, 1s));
    CHECK(adopts.adopted(10, 1s) == one_host);
    CHECK_FALSE(commits.committed(8, 1s));
    CHECK(commits.committed(9, 1s) == one_host);
  }
}

TEST_CASE("a host that has reached its goal is not left behind when everybody leaves") {
  run_goal goal;
  goal.begin(10, 0, true);
  CHECK(goal.stepped(10, 4s));
  CHECK_FALSE(goal.deserted(5s));
  CHECK_FALSE(goal.is_deserted());
}

TEST_CASE("a host that everybody has left ends when they left") {
  run_goal goal;
  goal.begin(10, 0, true);
  CHECK_FALSE(goal.is_deserted());
  CHECK(goal.deserted(5s));
  CHECK_FALSE(goal.deserted(6s));
  CHECK(goal.is_deserted());
  CHECK(goal.time() == 5s);
}
