#include "actors/training/round_tracker.hpp"

#include <doctest/doctest.h>

using namespace shoal;
using namespace shoal::actors;
using namespace std::chrono_literals;

namespace {

averaging_config config() {
  averaging_config out;
  out.matchmaking_time = 8s;
  out.poll_interval = 500ms;
  return out;
}

round_result missed(reason why) {
  round_result out;
  out.outcome = outcome::failed;
  out.reason = why;
  return out;
}

struct prepared {
  round_request request;
  averaging_config how = config();
};

prepared next_round(const round_tracker& rounds, duration least = {}) {
  prepared out;
  out.request.max_wait = least;
  rounds.prepare(out.request, out.how);
  return out;
}

} // namespace

TEST_CASE("round tracker: a first group may take the whole matchmaking time to gather") {
  const round_tracker rounds(config());
  CHECK(next_round(rounds).request.max_wait == 8s);
  CHECK(next_round(rounds).how.matchmaking_time == 8s);
}

TEST_CASE("round tracker: a leader waits as long as groups took to gather, and at least as long as "
          "the method asks") {
  round_tracker rounds(config());
  round_result gathered;
  gathered.outcome = outcome::ok;
  gathered.gathered = 1s;
  for (int i = 0; i < 50; ++i) rounds.learn(gathered, 10s);
  // The lower bound is four times the poll interval.
  CHECK(next_round(rounds).request.max_wait == 2s);
  CHECK(next_round(rounds, 5s).request.max_wait == 5s);
  CHECK(next_round(rounds, 50s).request.max_wait == 8s);
}

TEST_CASE("round tracker: after several missed groups the peer looks for a group for up to four "
          "times as long") {
  round_tracker rounds(config());
  rounds.learn(missed(reason::group_too_small), 10s);
  CHECK(next_round(rounds).how.matchmaking_time == 8s);
  rounds.learn(missed(reason::matchmaking_timeout), 20s);
  CHECK(next_round(rounds).how.matchmaking_time == 16s);
  CHECK(next_round(rounds).request.max_wait == 16s);
  for (int i = 0; i < 10; ++i) rounds.learn(missed(reason::no_reducer), 30s);
  CHECK(next_round(rounds).how.matchmaking_time == 32s);
  round_result fine;
  fine.outcome = outcome::ok;
  rounds.learn(fine, 40s);
  CHECK(next_round(rounds).how.matchmaking_time == 24s);
}

TEST_CASE("round tracker: a round that fails for other reasons changes no time") {
  round_tracker rounds(config());
  for (int i = 0; i < 10; ++i) rounds.learn(missed(reason::cancelled), 10s);
  CHECK(next_round(rounds).how.matchmaking_time == 8s);
}

TEST_CASE("round tracker: groups lack members after two that were missed, until one succeeds") {
  round_tracker rounds(config());
  rounds.learn(missed(reason::group_too_small), 1s);
  CHECK_FALSE(rounds.lacks_members());
  rounds.learn(missed(reason::group_too_small), 1s);
  CHECK(rounds.lacks_members());
  round_result gathered;
  gathered.outcome = outcome::ok;
  rounds.learn(gathered, 1s);
  CHECK_FALSE(rounds.lacks_members());
}

TEST_CASE("round tracker: a leader that began no group is followed last for ten epochs, then for "
          "twenty") {
  round_tracker rounds(config());
  const member_id leader{1, 2};
  const auto avoided = [&](std::uint64_t epoch) {
    prepared next;
    next.request.epoch = epoch;
    rounds.prepare(next.request, next.how);
    return next.request.bad_leaders == std::set<member_id>{leader};
  };
  auto failed = missed(reason::matchmaking_timeout);
  failed.epoch = 7;
  failed.bad_leader = leader;
  rounds.learn(failed, 10s);
  CHECK(avoided(7));
  // Rounds that others lead do not clear the leader.
  round_result fine;
  fine.outcome = outcome::ok;
  for (fine.epoch = 7; fine.epoch < 17; ++fine.epoch) rounds.learn(fine, 20s);
  CHECK(avoided(17));
  CHECK(!avoided(18));
  failed.epoch = 20;
  rounds.learn(failed, 30s);
  CHECK(avoided(40));
  CHECK(!avoided(41));
  // The others may still follow the leader. They are missing then.
  rounds.learn(missed(reason::group_too_small), 40s);
  CHECK(!avoided(21));
}

TEST_CASE("round tracker: a reducer whose part differed gets none, and is followed last") {
  round_tracker rounds(config());
  const member_id reducer{3, 4};
  auto failed = missed(reason::no_majority);
  failed.epoch = 5;
  failed.bad_reducers = {reducer};
  rounds.learn(failed, 10s);
  for (const std::uint64_t epoch : {5, 15, 16}) {
    prepared next;
    next.request.epoch = epoch;
    rounds.prepare(next.request, next.how);
    const std::set<member_id> avoided = epoch < 16 ? std::set{reducer} : std::set<member_id>{};
    CHECK(next.request.bad_reducers == avoided);
    CHECK(next.request.bad_leaders == avoided);
  }
}
