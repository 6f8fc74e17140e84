#include "actors/averaging/ballot.hpp"

#include <doctest/doctest.h>

using namespace shoal::actors;

namespace {

constexpr id128 ours{1, 1}, theirs{2, 2};

} // namespace

TEST_CASE("a version wins with the votes of more than half of those who take the result") {
  ballot votes({true, true, true, true, false}, 0); // the last member only reduces
  CHECK(votes.majority() == 3);
  votes.cast(ours);
  CHECK(votes.cast(1, ours));
  CHECK(votes.count(votes.majority()) == ballot::verdict::open);
  CHECK(votes.cast(2, theirs));
  CHECK(votes.count(votes.majority()) == ballot::verdict::open);
  CHECK(votes.possible() == 3); // our vote, that of member 1 and perhaps that of member 3
  CHECK(votes.cast(3, ours));
  CHECK(votes.count(votes.majority()) == ballot::verdict::won);
}

TEST_CASE("a member votes once: its vote for another version is refused") {
  ballot votes({true, true}, 0);
  CHECK(votes.cast(1, theirs));
  CHECK(votes.cast(1, theirs));
  CHECK_FALSE(votes.cast(1, ours));
}

TEST_CASE("a lost member's vote counts and its silence is no possible vote") {
  ballot votes({true, true, true}, 0);
  votes.cast(1, ours);
  votes.lose(1, false);
  votes.lose(2, false);
  CHECK(votes.majority() == 2);
  CHECK(votes.possible() == 2);
  votes.cast(ours);
  CHECK(votes.count(votes.majority()) == ballot::verdict::won);
}

TEST_CASE("a member that declined is no voter") {
  ballot votes({true, true, true, true}, 0);
  CHECK(votes.majority() == 3);
  votes.lose(3, true);
  CHECK(votes.majority() == 2);
  CHECK(votes.possible() == 3);
}

TEST_CASE("the majority that a member announces decides for our version or against it") {
  ballot votes({true, true, true}, 0);
  CHECK_FALSE(votes.announced());
  votes.cast(ours);
  votes.announce(theirs);
  CHECK(votes.announced());
  CHECK(votes.count(votes.majority()) == ballot::verdict::lost);
  votes.announce(ours);
  CHECK(votes.count(votes.majority()) == ballot::verdict::won);
}
