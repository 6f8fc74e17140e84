#include "actors/averaging/ballot.hpp"

#include <doctest/doctest.h>

using namespace shoal::actors;

namespace {

constexpr id128 ours{1, 1}, theirs{2, 2};
constexpr signature by{};

} // namespace

TEST_CASE("a version wins with the votes of more than two thirds of those who take the result") {
  ballot votes({true, true, true, true, false}, 0); // the last member only reduces
  CHECK(votes.needed() == 3);
  votes.cast(ours, by);
  CHECK(votes.cast(1, ours, by));
  CHECK(votes.count(votes.needed()) == ballot::verdict::open);
  CHECK(votes.cast(2, theirs, by));
  CHECK(votes.count(votes.needed()) == ballot::verdict::open);
  CHECK(votes.possible() == 3); // our vote, that of member 1 and perhaps that of member 3
  CHECK(votes.cast(3, ours, by));
  CHECK(votes.count(votes.needed()) == ballot::verdict::won);
  CHECK(votes.votes_for(ours).size() == 3);
}

TEST_CASE("two sets of more than two thirds share more than a third") {
  for (std::uint32_t voters = 1; voters <= 256; ++voters) {
    const auto shared = 2 * static_cast<int>(votes_needed(voters)) - static_cast<int>(voters);
    CHECK(3 * shared > static_cast<int>(voters));
    CHECK(votes_needed(voters) <= voters);
  }
}

TEST_CASE("a member votes once: its vote for another version is refused, and both are the proof") {
  ballot votes({true, true}, 0);
  CHECK(votes.cast(1, theirs, by));
  CHECK(votes.cast(1, theirs, by));
  CHECK_FALSE(votes.cast(1, ours, by));
  const auto proof = votes.contradicts(1, ours, by);
  CHECK(proof.what == contradiction::kind::two_votes);
  CHECK(proof.first == ours);
  CHECK(proof.second == theirs);
}

TEST_CASE("a lost member's vote counts and its silence is no possible vote") {
  ballot votes({true, true, true, true}, 0);
  votes.cast(1, ours, by);
  votes.cast(2, ours, by);
  for (const std::uint32_t m : {1, 2, 3}) votes.lose(m);
  CHECK(votes.needed() == 3);
  CHECK(votes.possible() == 3);
  votes.cast(ours, by);
  CHECK(votes.count(votes.needed()) == ballot::verdict::won);
}

TEST_CASE("a member that declined in writing is no voter, and one that voted cannot decline") {
  ballot votes({true, true, true, true, true, true}, 0);
  CHECK(votes.needed() == 5);
  CHECK(votes.decline(5, by));
  CHECK(votes.needed() == 4);
  CHECK(votes.possible() == 5);
  CHECK_FALSE(votes.cast(5, ours, by));
  CHECK(votes.contradicts(5, ours, by).what == contradiction::kind::vote_and_decline);
  CHECK(votes.cast(4, ours, by));
  CHECK_FALSE(votes.decline(4, by));
  CHECK(votes.declines_for(ours).size() == 1);
}

TEST_CASE("a version that we do not hold can win against ours, or without ours") {
  ballot votes({true, true, true, true}, 0);
  for (const std::uint32_t m : {1, 2, 3}) votes.cast(m, theirs, by);
  CHECK(votes.winner(votes.needed()) == theirs);
  votes.cast(ours, by);
  CHECK(votes.count(votes.needed()) == ballot::verdict::lost);
}

TEST_CASE("a certificate counts even if we know another vote of one of its voters") {
  ballot votes({true, true, true, true}, 0);
  votes.cast(ours, by);
  CHECK(votes.cast(1, theirs, by));
  CHECK_FALSE(votes.cast(1, ours, by));
  CHECK(votes.cast(2, ours, by));
  CHECK(votes.count(votes.needed()) == ballot::verdict::open);
  votes.certify(ours, {{0, by}, {1, by}, {2, by}}, {});
  CHECK(votes.count(votes.needed()) == ballot::verdict::won);
  CHECK(votes.votes_for(ours).size() == 3);
}
