// actors/pipeline/micro_batch: the course of a micro-batch, with peers that die.
#include "actors/pipeline/micro_batch.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

using namespace shoal;
using namespace shoal::actors;
using kind = micro_batch::task_kind;
using tasks = std::vector<micro_batch::task>;

namespace {

payload bytes(std::size_t size) {
  return payload::size_only(size);
}

/// Takes the micro-batch through all tasks that are due, each on peer `by`.
void run(micro_batch& what, peer_id by) {
  for (auto due = what.due(); !due.empty(); due = what.due()) {
    const auto next = due.front();
    what.sent(next, by);
    REQUIRE(what.answered(next, by, bytes(1)));
    if (next.kind == kind::backward) REQUIRE(what.counted(next.hop, by));
  }
}

} // namespace

TEST_CASE("a micro-batch passes forward through the hops and backward again") {
  micro_batch what(1, 3, bytes(10), 2);
  tasks seen;
  for (auto due = what.due(); !due.empty(); due = what.due()) {
    REQUIRE(due.size() == 1);
    seen.push_back(due.front());
    what.sent(due.front(), 5);
    CHECK(what.due().empty());
    REQUIRE(what.answered(due.front(), 5, bytes(seen.size())));
    if (due.front().kind == kind::backward) REQUIRE(what.counted(due.front().hop, 5));
  }
  CHECK(seen == tasks{{kind::forward, 0},
                      {kind::forward, 1},
                      {kind::backward, 2},
                      {kind::backward, 1},
                      {kind::backward, 0}});
  CHECK(what.done());
  CHECK(what.input(1).size() == 1);
  CHECK(what.input(2).size() == 2);
  CHECK(what.gradient(1).size() == 3);
  CHECK(what.gradient(0).size() == 4);
}

TEST_CASE("a hop beyond the end of the pipeline is of no use, also to a peer with a task") {
  micro_batch what(1, 3, bytes(10), 2);
  what.sent({kind::forward, 0}, 5);
  CHECK(what.awaits({kind::forward, 0}, 5));
  for (const std::uint32_t hop : {3U, 4U, ~0U})
    for (const auto way : {kind::forward, kind::backward}) {
      CHECK(!what.awaits({way, hop}, 5));
      CHECK(!what.answered({way, hop}, 5, bytes(1)));
      CHECK(!what.counted(hop, 5));
      what.failed({way, hop}, 5);
    }
  CHECK(what.awaits({kind::forward, 0}, 5));
}

TEST_CASE("an answer of a peer that was not asked is of no use") {
  micro_batch what(1, 2, bytes(10), 2);
  CHECK(!what.answered({kind::forward, 0}, 5, bytes(1)));
  what.sent({kind::forward, 0}, 5);
  CHECK(!what.answered({kind::forward, 0}, 6, bytes(1)));
  CHECK(!what.answered({kind::backward, 0}, 5, bytes(1)));
  CHECK(!what.answered({kind::backward, 9}, 5, bytes(1)));
  CHECK(what.answered({kind::forward, 0}, 5, bytes(1)));
  CHECK(!what.answered({kind::forward, 0}, 5, bytes(1)));
  CHECK(!what.counted(0, 5));
}

TEST_CASE("a task of a dead peer is due again and its answer comes too late") {
  micro_batch what(1, 3, bytes(10), 2);
  what.sent({kind::forward, 0}, 5);
  CHECK(what.lost(5) == 0);
  CHECK(what.due() == tasks{{kind::forward, 0}});
  what.sent({kind::forward, 0}, 6);
  CHECK(!what.answered({kind::forward, 0}, 5, bytes(1)));
  CHECK(what.answered({kind::forward, 0}, 6, bytes(1)));
}

TEST_CASE("only what has counted at a dead peer is computed again") {
  micro_batch what(1, 4, bytes(10), 2);
  run(what, 5);
  REQUIRE(what.done());
  CHECK(what.lost(6) == 0);
  CHECK(what.done());
  // Peer 5 has counted all four hops.
  CHECK(what.lost(5) == 4);
  CHECK(what.due() ==
        tasks{{kind::backward, 0}, {kind::backward, 1}, {kind::backward, 2}, {kind::backward, 3}});
  const auto before = what.gradient(0);
  for (const auto& due : what.due()) {
    what.sent(due, 7);
    CHECK(what.answered(due, 7, bytes(99)));
    CHECK(what.counted(due.hop, 7));
  }
  CHECK(what.done());
  // The gradients that are known stay as they are.
  CHECK(what.gradient(0).same_memory(before));
}

TEST_CASE("a backward answer whose count was not confirmed is lost with its peer") {
  micro_batch what(1, 2, bytes(10), 2);
  what.sent({kind::forward, 0}, 5);
  REQUIRE(what.answered({kind::forward, 0}, 5, bytes(1)));
  what.sent({kind::backward, 1}, 5);
  REQUIRE(what.answered({kind::backward, 1}, 5, bytes(1)));
  CHECK(what.lost(5) == 0);
  CHECK(!what.counted(1, 5));
  // Hop 0 goes on meanwhile.
  CHECK(what.due() == tasks{{kind::backward, 0}, {kind::backward, 1}});
}

TEST_CASE("a task that was refused is due again") {
  micro_batch what(1, 2, bytes(10), 2);
  what.sent({kind::forward, 0}, 5);
  what.failed({kind::forward, 0}, 6);
  CHECK(what.due().empty());
  what.failed({kind::forward, 0}, 5);
  CHECK(what.due() == tasks{{kind::forward, 0}});
  run(what, 6);
  CHECK(what.done());
}

TEST_CASE("a hop whose stage has stepped needs nothing more") {
  micro_batch what(1, 2, bytes(10), 2);
  run(what, 5);
  REQUIRE(what.lost(5) == 2);
  what.settle(1);
  CHECK(what.due() == tasks{{kind::backward, 0}});
  CHECK_FALSE(what.done());
  what.settle(0);
  CHECK(what.done());
}
