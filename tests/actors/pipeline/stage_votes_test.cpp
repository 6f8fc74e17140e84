// actors/pipeline/stage_votes: one member's claim leads nobody where others disagree.
#include "actors/pipeline/stage_votes.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <optional>

using namespace shoal;
using namespace shoal::actors;

namespace {

announced_state at(std::uint64_t epoch, std::uint64_t content = 0) {
  return {epoch, {epoch, epoch}, {content, content}};
}

} // namespace

TEST_CASE("an epoch counts once at least half of the members have reached it") {
  stage_votes votes;
  CHECK(!votes.reached());
  CHECK(!votes.leading());
  votes.add({1, 1}, at(3));
  CHECK(votes.reached() == 3U);
  votes.add({2, 2}, at(4)); // each is half of the two
  CHECK(votes.reached() == 4U);
  votes.add({3, 3}, at(3));
  CHECK(votes.reached() == 3U);
  votes.add({4, 4}, at(1'000'000));
  CHECK(votes.reached() == 4U);
}

TEST_CASE("a member has one vote however many nodes it runs") {
  stage_votes votes;
  votes.add({1, 1}, at(3));
  votes.add({2, 2}, at(3));
  for (const std::uint64_t epoch : {900, 901, 902}) votes.add({7, 7}, at(epoch));
  CHECK(votes.reached() == 3U);
  CHECK(votes.leading() == at(3));
}

TEST_CASE("a state that one member announces has fewer votes than that of the others") {
  stage_votes votes;
  votes.add({7, 7}, at(5, 13));
  for (const std::uint64_t who : {1, 2}) votes.add({who, who}, at(5, 12));
  CHECK(votes.leading() == at(5, 12));
  // While the others make a step the state before may lead.
  votes.add({1, 1}, at(6, 20));
  CHECK(votes.reached() == 5U);
  votes.add({2, 2}, at(6, 20));
  CHECK(votes.leading() == at(6, 20));
}
