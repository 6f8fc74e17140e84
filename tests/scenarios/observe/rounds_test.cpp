#include "scenarios/observe/rounds.hpp"
#include "tests/scenarios/observe/helpers.hpp"

#include <doctest/doctest.h>

using namespace shoal;
using namespace shoal::scenarios;
using namespace shoal::scenarios::test;
using actors::outcome;
using actors::reason;

namespace {

struct fixture {
  std::vector<swarm_round> final;
  round_book book{[this](const swarm_round& what) { final.push_back(what); }, 60s};

  void contribute(std::uint64_t epoch, std::uint32_t members) {
    for (std::uint32_t i = 0; i < members; ++i)
      book.contributed(1s, 100 + i, contribution(epoch, i, members, {{i * 10, 10}}, {1}));
  }
  void end(std::uint64_t epoch, std::uint32_t member, std::uint32_t members, outcome o,
           reason r = reason::none) {
    book.ended(2s, 100 + member, ending(epoch, member, members, o, r, {{0, 1, {0}, 10}}, {1}));
  }
};

} // namespace

TEST_CASE("a round is ok when all members end it well, and is final only then") {
  fixture f;
  f.contribute(1, 3);
  f.end(1, 0, 3, outcome::ok);
  f.end(1, 2, 3, outcome::ok);
  CHECK(f.final.empty());
  f.end(1, 1, 3, outcome::ok);
  REQUIRE(f.final.size() == 1);
  CHECK(f.final[0].outcome == outcome::ok);
  CHECK(f.final[0].reason == reason::none);
  CHECK(f.final[0].members[2].weight == 10);
  CHECK(f.book.counts().of(outcome::ok) == 1);
  CHECK(f.book.counts().by_reason.empty());
  CHECK(f.book.open() == 0);
}

TEST_CASE("a round with weight missing somewhere is partial and keeps the reason") {
  fixture f;
  f.contribute(1, 3);
  f.end(1, 0, 3, outcome::partial, reason::sender_lost);
  f.book.killed(2s, 101);
  f.end(1, 2, 3, outcome::partial, reason::sender_lost);
  CHECK(f.book.counts().of(outcome::partial) == 1);
  CHECK(f.book.counts().by_reason.at("sender_lost") == 1);
}

TEST_CASE("a round that some survivors completed and others did not is split") {
  fixture f;
  f.contribute(1, 3);
  f.end(1, 0, 3, outcome::ok);
  f.end(1, 1, 3, outcome::failed, reason::cancelled);
  f.end(1, 2, 3, outcome::failed, reason::reducer_lost);
  CHECK(f.book.counts().of(outcome::split) == 1);
  CHECK(f.book.counts().by_reason.at("reducer_lost") ==
        1); // the cause, not who gave up because of it
}

TEST_CASE(
    "the second of two consecutive rounds counts, and the first only if it did not end well") {
  for (const outcome first : {outcome::ok, outcome::partial, outcome::failed}) {
    fixture f;
    for (std::uint32_t i = 0; i < 3; ++i) {
      auto what = contribution(1, i, 3, {}, {1});
      what.first_of_two = true;
      f.book.contributed(1s, 100 + i, what);
    }
    const reason why = first == outcome::ok ? reason::none : reason::sender_lost;
    f.end(1, 0, 3, first, why);
    f.end(1, 1, 3, first, why);
    f.end(1, 2, 3, first, why);
    REQUIRE(f.final.size() == 1);
    CHECK(f.final[0].first_of_two);
    f.end(1, 2, 3, first, why); // and late
    CHECK(f.book.counts().of(outcome::ok) + f.book.counts().of(outcome::partial) == 0);
    CHECK(f.book.counts().of(outcome::failed) == (first == outcome::failed ? 1 : 0));
    CHECK(f.book.counts().completed == 0);
    f.contribute(2, 3);
    for (std::uint32_t i = 0; i < 3; ++i) f.end(2, i, 3, outcome::ok);
    CHECK(f.book.counts().of(outcome::ok) == 1);
    CHECK(f.book.counts().completed == 1);
  }
}

TEST_CASE("members that die are no survivors") {
  fixture f;
  f.contribute(1, 2);
  f.end(1, 0, 2, outcome::ok);
  f.book.killed(2s, 100); // completed it and died
  f.end(1, 1, 2, outcome::failed, reason::reducer_lost);
  CHECK(f.book.counts().of(outcome::failed) == 1);
  CHECK(f.book.counts().of(outcome::split) == 0);
  CHECK(f.final.at(0).completed);

  f.contribute(2, 2); // peer 100 is dead already
  f.end(2, 1, 2, outcome::ok);
  CHECK(f.book.counts().of(outcome::ok) == 1);
}

TEST_CASE("when nobody survives, those who ended it before decide") {
  fixture f;
  f.contribute(1, 2);
  f.end(1, 0, 2, outcome::ok);
  f.book.killed(2s, 100);
  f.book.killed(2s, 101);
  CHECK(f.book.counts().of(outcome::ok) == 1);

  fixture all;
  all.contribute(1, 2);
  all.book.killed(2s, 100);
  all.book.killed(2s, 101);
  CHECK(all.book.counts().of(outcome::failed) == 1);
  CHECK(all.book.counts().by_reason.at("sender_lost") == 1);
}

TEST_CASE("a member that nobody heard of is waited for, but not for ever") {
  fixture f;
  f.book.contributed(1s, 100, contribution(1, 0, 2, {{0, 10}}, {1}));
  f.end(1, 0, 2, outcome::partial, reason::sender_timeout);
  f.book.advance(61s);
  CHECK(f.final.empty());
  f.book.advance(80s);
  CHECK(f.book.counts().of(outcome::partial) == 1);
  // The member's end comes at last: the round was split after all.
  f.end(1, 1, 2, outcome::failed, reason::reducer_timeout);
  CHECK(f.book.counts().of(outcome::partial) == 0);
  CHECK(f.book.counts().of(outcome::split) == 1);
  CHECK(f.book.counts().late == 1);
  CHECK(f.book.open() == 0);
}

TEST_CASE("a round that the end of the run interrupts has no outcome") {
  fixture f;
  f.contribute(1, 2);
  f.end(1, 0, 2, outcome::ok);
  f.book.finish(3s);
  CHECK(f.book.counts().unfinished == 1);
  CHECK(f.book.counts().of(outcome::ok) == 0);
  REQUIRE(f.final.size() == 1);
  CHECK(f.final[0].unfinished);
}

TEST_CASE(
    "attempts without a group are counted once for each peer and epoch, and fail once an epoch") {
  fixture f;
  const auto attempt = [&](actors::peer_id peer, std::uint64_t epoch, reason why) {
    actors::round_ended what = ending(epoch, 0, 0, outcome::failed, why);
    what.group = {};
    f.book.ended(2s, peer, what);
  };
  for (int retry = 0; retry < 3; ++retry) {
    attempt(100, 5, reason::matchmaking_timeout);
    attempt(101, 5, reason::matchmaking_timeout);
    attempt(102, 5, reason::group_closed);
  }
  CHECK(f.book.counts().by_reason.at("matchmaking_timeout") == 2);
  CHECK(f.book.counts().by_reason.at("group_closed") == 1);
  CHECK(f.book.counts().of(outcome::failed) == 1);
  attempt(102, 6, reason::group_closed); // the round took place without it
  CHECK(f.book.counts().of(outcome::failed) == 1);
}

TEST_CASE("ten thousand aborted rounds leave nothing open") {
  fixture f;
  for (std::uint64_t epoch = 1; epoch <= 10'000; ++epoch) {
    f.contribute(epoch, 2);
    f.end(epoch, 0, 2, outcome::failed, reason::cancelled);
    f.end(epoch, 1, 2, outcome::failed, reason::cancelled);
    f.final.clear();
  }
  CHECK(f.book.open() == 0);
  CHECK(f.book.counts().of(outcome::failed) == 10'000);
}

TEST_CASE("in local view a round is final when the members of this host have ended it, and theirs "
          "is the outcome") {
  std::vector<swarm_round> final;
  round_book book([&](const swarm_round& what) { final.push_back(what); }, 60s,
                  observed_view::local);
  book.contributed(1s, 101, contribution(1, 1, 3, {{10, 10}}, {1}));
  CHECK(book.open() == 1);
  book.ended(2s, 101,
             ending(1, 1, 3, outcome::partial, reason::sender_lost, {{0, 1, {0, 1}, 20}}, {1}));
  REQUIRE(final.size() == 1);
  CHECK(final[0].outcome == outcome::partial);
  CHECK(final[0].members.size() == 3);
  CHECK(samples_included(final[0]) == 10); // the other sender's are the other host's to count
  // A peer that only reduces reports its end, too.
  auto reduces = contribution(2, 2, 3, {}, {1});
  reduces.takes = false;
  book.contributed(3s, 102, reduces);
  book.ended(4s, 102, ending(2, 2, 3, outcome::ok, reason::none));
  CHECK(book.counts().of(outcome::ok) == 1);
  CHECK(book.counts().by_reason.size() == 1);
  // At the end only what this host is in is unfinished.
  book.contributed(5s, 101, contribution(3, 1, 3, {{20, 10}}, {1}));
  book.finish(6s);
  CHECK(book.counts().unfinished == 1);
}
