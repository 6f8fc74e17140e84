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

/// The peer's member has the same number.
known_stages::change note(known_stages& known, peer_id whom, const stage_record& what) {
  const auto out = known.learn(whom, {whom, whom}, what, {}, 10);
  known.count(what.stage);
  return out;
}

} // namespace

TEST_CASE("a peer is new once, and leaves its stage for another one") {
  known_stages known(2);
  CHECK(note(known, 7, record(0, 3, 1)).is_new);
  const auto again = note(known, 7, record(0, 4, 2));
  CHECK(!again.is_new);
  CHECK(!again.left);
  CHECK(note(known, 7, record(1, 4, 3)).left == 0);
  CHECK(known.find(7)->stage == 1);
  CHECK(known.find(7)->epoch == 4);
  known.forget(7);
  CHECK(known.find(7) == nullptr);
  CHECK(known.is_gone(7, 10)); // the record lives on
  CHECK(!known.is_gone(7, 11));
  CHECK(note(known, 7, record(0, 5, 4)).is_new);
}

TEST_CASE("a stage without a peer has no epoch, and others have that of half of their peers") {
  known_stages known(3);
  note(known, 1, record(0, 3, 1));
  note(known, 2, record(0, 5, 2));
  note(known, 3, record(2, 5, 3));
  CHECK(known.epochs() == std::vector<std::optional<std::uint64_t>>{5, std::nullopt, 5});
  CHECK(known.stepped(0, 4));
  CHECK(!known.stepped(0, 5));
  CHECK(!known.stepped(1, 0));
  CHECK(known.donors(0, 5) == std::vector<peer_id>{2});
  CHECK(known.donors(0, 3).empty());
  CHECK(known.donors(2, 3).empty());
}

TEST_CASE("one peer that claims a later epoch makes no trainer skip a batch") {
  known_stages known(1);
  for (const peer_id whom : {1, 2}) note(known, whom, record(0, 3, 1));
  note(known, 7, record(0, 1'000'000, 2));
  CHECK(known.epochs() == std::vector<std::optional<std::uint64_t>>{3});
  CHECK(!known.stepped(0, 3));
  CHECK(known.donors(0, 3) == std::vector<peer_id>{1, 2});
  // The records of the liar do not push the true ids out either.
  for (std::uint64_t epoch = 10; epoch < 20; ++epoch) note(known, 7, record(0, epoch, epoch));
  CHECK(!known.whole_at(3).is_zero());
  // Nodes of one member are one vote.
  for (const peer_id node : {8, 9, 10, 11}) {
    known.learn(node, {7, 7}, record(0, 1'000'000, 2), {}, 10);
    known.count(0);
  }
  CHECK(!known.stepped(0, 3));
  note(known, 2, record(0, 4, 5));
  CHECK(known.stepped(0, 3));
}

TEST_CASE("a record that puts a stage far ahead of the others has no vote") {
  known_stages known(3);
  note(known, 1, record(0, 3, 1));
  note(known, 2, record(1, 4, 2));
  note(known, 3, record(2, 3, 3));
  note(known, 7, record(2, 1'000'000, 4)); // half of its stage
  CHECK(known.epochs() == std::vector<std::optional<std::uint64_t>>{3, 4, 3});
}

TEST_CASE("the whole state has an id once the records have shown all of its parts") {
  known_stages known(2);
  note(known, 1, record(0, 3, 1));
  CHECK(known.whole_at(3).is_zero());
  note(known, 2, record(1, 3, 2));
  const std::array<state_id, 2> both{state_id{1, 1}, state_id{2, 2}};
  CHECK(known.whole_at(3) == whole_state_id(both));
  // The state that led first counts if the stage has split.
  note(known, 4, record(1, 3, 9));
  CHECK(known.whole_at(3) == whole_state_id(both));
  // A peer that goes on does not take the id with it. Ids of long ago are forgotten.
  for (std::uint64_t epoch = 4; epoch < 8; ++epoch) {
    CHECK(known.whole_at(3) == whole_state_id(both));
    note(known, 1, record(0, epoch, epoch));
    note(known, 2, record(1, epoch, epoch));
  }
  CHECK(known.whole_at(3).is_zero());
}
