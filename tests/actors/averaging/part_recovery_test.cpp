#include "actors/averaging/part_recovery.hpp"

#include <doctest/doctest.h>

using namespace shoal::actors;

namespace {

const auto nothing = [](std::uint32_t) { return false; };

} // namespace

TEST_CASE("a claimer fetches each chunk once and from the first member that holds it") {
  part_recovery part;
  CHECK_FALSE(part.reduces());
  part.reduce(chunk_set(4, false));
  CHECK(part.reduces());
  part.reported(2, {true, true, false, false});
  part.reported(1, {false, true, false, false});
  CHECK(part.has_reported(1));
  CHECK_FALSE(part.has_spoken(3));
  const auto plan = part.gather([](std::uint32_t chunk) { return chunk == 3; }); // we hold it
  REQUIRE(plan.fetch.size() == 2);
  CHECK(plan.fetch.at(1) == chunk_set{false, true, false, false});
  CHECK(plan.fetch.at(2) == chunk_set{true, false, false, false});
  CHECK(plan.left == chunk_set{false, false, true, false});
  CHECK(plan.any_left());
  CHECK(part.fetches(1, 1));
  CHECK_FALSE(part.fetches(1, 2));
  CHECK(part.gather(nothing).fetch.empty());
}

TEST_CASE("a chunk whose holder is lost is fetched from another member or reduced") {
  part_recovery part;
  part.reduce(chunk_set(2, false));
  part.complete_at(1);
  part.reported(2, {true, false});
  CHECK(part.gather(nothing).fetch.at(1) == chunk_set{true, true});
  part.lose(1);
  CHECK_FALSE(part.has_spoken(1));
  const auto plan = part.gather(nothing);
  CHECK(plan.fetch.at(2) == chunk_set{true, false});
  CHECK(plan.left == chunk_set{false, true});
  part.reduce_also(plan.left);
  CHECK_FALSE(part.gather(nothing).any_left());
}

TEST_CASE("a member is given a chunk once as our slice and once as a finished chunk") {
  part_recovery part;
  CHECK(part.give(1, false, 0, 2));
  CHECK_FALSE(part.give(1, false, 0, 2));
  CHECK(part.give(1, true, 0, 2));
  CHECK(part.give(1, false, 1, 2));
  CHECK(part.give(2, false, 0, 2));
}

TEST_CASE("claimants are told once and a lost claimant never") {
  part_recovery part;
  part.claimed_by(3);
  part.claimed_by(1);
  part.claimed_by(2);
  part.lose(1);
  CHECK(part.take_claimants() == std::set<std::uint32_t>{2, 3});
  CHECK(part.take_claimants().empty());
}
