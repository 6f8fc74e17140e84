// actors/pipeline/rebalancing: which peer moves from which stage to which.
#include "actors/pipeline/rebalancing.hpp"

#include <doctest/doctest.h>

#include <vector>

using namespace shoal::actors;

TEST_CASE("the peer with the shortest queue goes from the least loaded stage to the most loaded") {
  const std::vector<stage_load> peers{{1, 0, 5}, {2, 0, 4}, {3, 1, 1}, {4, 1, 0.5}, {5, 2, 20}};
  CHECK(due_move(peers, 3) == stage_move{4, 1, 2});
}

TEST_CASE("a stage with one peer gives none") {
  // Stage 0 has the least load and one peer, so stage 1 gives.
  const std::vector<stage_load> peers{{1, 0, 0}, {2, 1, 1}, {3, 1, 2}, {4, 2, 9}};
  CHECK(due_move(peers, 3) == stage_move{2, 1, 2});
  CHECK(!due_move(std::vector<stage_load>{{1, 0, 0}, {2, 1, 9}}, 2));
}

TEST_CASE("nobody moves between stages of equal load") {
  CHECK(!due_move(std::vector<stage_load>{{1, 0, 2}, {2, 0, 2}, {3, 1, 4}}, 2));
  CHECK(!due_move(std::vector<stage_load>{}, 2));
  // The only stage with peers to give has the largest load.
  CHECK(!due_move(std::vector<stage_load>{{1, 0, 1}, {2, 1, 4}, {3, 1, 4}}, 2));
}

TEST_CASE("an empty stage attracts movers and newcomers first") {
  const std::vector<stage_load> peers{{1, 0, 2}, {2, 0, 3}, {3, 2, 9}};
  CHECK(stage_to_join(totals_of(peers, 3)) == 1);
  CHECK(due_move(peers, 3) == stage_move{1, 0, 1});
}

TEST_CASE("ties are broken by numbers so that all readers of the records agree") {
  const std::vector<stage_load> peers{{9, 0, 1}, {3, 0, 1}, {5, 1, 1}, {4, 1, 1}, {6, 2, 7}};
  CHECK(due_move(peers, 3) == stage_move{3, 0, 2});
  auto backwards = peers;
  std::vector<stage_load> reversed(backwards.rbegin(), backwards.rend());
  CHECK(due_move(reversed, 3) == due_move(peers, 3));
}

TEST_CASE("a newcomer joins the stage with the largest load and among equals the smallest one") {
  CHECK(stage_to_join(totals_of(std::vector<stage_load>{{1, 0, 1}, {2, 1, 5}}, 2)) == 1);
  CHECK(stage_to_join(totals_of(std::vector<stage_load>{{1, 0, 0}, {2, 0, 0}, {3, 1, 0}}, 2)) == 1);
  CHECK(stage_to_join(totals_of(std::vector<stage_load>{}, 4)) == 0);
}

TEST_CASE("a move helps if the stages are nearer to each other after it") {
  const auto helps = [](const std::vector<stage_load>& peers) {
    const auto due = due_move(peers, 2);
    REQUIRE(due);
    return move_helps(*due, totals_of(peers, 2));
  };
  // Two peers with 1 each leave one peer with twice the load behind.
  CHECK_FALSE(helps({{1, 0, 1}, {2, 0, 1}, {3, 1, 1}, {4, 1, 1.5}}));
  CHECK_FALSE(helps({{1, 0, 1}, {2, 0, 1}, {3, 1, 2}, {4, 1, 2}}));
  CHECK(helps({{1, 0, 1}, {2, 0, 1}, {3, 1, 2.5}, {4, 1, 2}}));
  CHECK_FALSE(helps({{1, 0, 1}, {2, 0, 1}, {3, 1, 4}}));
  CHECK(helps({{1, 0, 1}, {2, 0, 1}, {3, 1, 5}}));
}
