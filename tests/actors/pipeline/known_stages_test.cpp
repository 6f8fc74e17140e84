// actors/pipeline/known_stages: records of stages show their peers and the ids of states.
#include "actors/pipeline/known_stages.hpp"
#include "actors/pipeline/staged_workload.hpp"

#include <doctest/doctest.h>

#include <array>
#include <optional>
#include <vector>

using namespace shoal;
using namespace shoal::actors;

namespace {

stage_record record(std::uint32_t stage, std::uint64_t epoch, std::uint64_t state) {
  stage_record out;
  out.stage = stage;
  out.epoch = epoch;
  out.state = {state, state};
  return out;
}

} // namespace

TEST_CASE("a peer is new once, and leaves its stage for another one") {
  known_stages known(2);
  CHECK(known.learn(7, record(0, 3, 1), {}).is_new);
  const auto again = known.learn(7, record(0, 4, 2), {});
  CHECK(!again.is_new);
  CHECK(!again.left);
  CHECK(known.learn(7, record(1, 4, 3), {}).left == 0);
  CHECK(known.find(7)->stage == 1);
  CHECK(known.find(7)->epoch == 4);
  known.forget(7);
  CHECK(known.find(7) == nullptr);
  CHECK(known.learn(7, record(0, 5, 4), {}).is_new);
}

TEST_CASE("a stage without a peer has no epoch, and others have that of their first peer") {
  known_stages known(3);
  known.learn(1, record(0, 3, 1), {});
  known.learn(2, record(0, 5, 2), {});
  known.learn(3, record(2, 4, 3), {});
  CHECK(known.highest_epochs() == std::vector<std::optional<std::uint64_t>>{5, std::nullopt, 4});
  CHECK(known.stepped(0, 4));
  CHECK(!known.stepped(0, 5));
  CHECK(!known.stepped(1, 0));
  CHECK(known.donor(0, 3) == known.find(1));
  CHECK(known.donor(2, 3) == nullptr);
}

TEST_CASE("the whole state has an id once the records have shown all of its parts") {
  known_stages known(2);
  known.learn(1, record(0, 3, 1), {});
  CHECK(known.whole_at(3).is_zero());
  known.learn(2, record(1, 3, 2), {});
  const std::array<state_id, 2> both{state_id{1, 1}, state_id{2, 2}};
  CHECK(known.whole_at(3) == whole_state_id(both));
  // The first record of a stage counts if the stage has split.
  known.learn(4, record(1, 3, 9), {});
  CHECK(known.whole_at(3) == whole_state_id(both));
  // A peer that goes on does not take the id with it. Ids of long ago are forgotten.
  for (std::uint64_t epoch = 4; epoch < 8; ++epoch) {
    CHECK(known.whole_at(3) == whole_state_id(both));
    known.learn(1, record(0, epoch, epoch), {});
  }
  CHECK(known.whole_at(3).is_zero());
}
