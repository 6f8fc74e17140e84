#include "actors/training/chain_follower.hpp"
#include "tests/actors/support/mini_world.hpp"

#include <caf/actor_cast.hpp>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

using namespace shoal;
using namespace shoal::actors;
using namespace shoal::actors::testing;
using namespace std::chrono_literals;

namespace {

constexpr member_id self{1, 1};
const chain_point initial{0, {1, 1}};

/// The member of the peer with this id.
member_id member(peer_id peer) {
  return {peer, peer};
}

step_ptr step_from(const chain_point& before, const std::vector<peer_id>& members,
                   std::uint64_t group = 1) {
  certified_step out;
  out.before = before;
  out.after = {before.epoch + 1, state_after(before.state, {group, before.epoch}, {2, 2})};
  for (const auto m : members) out.supporters.push_back(member(m));
  return std::make_shared<const certified_step>(std::move(out));
}

std::vector<step_ptr> steps_from(chain_point at, std::size_t count,
                                 const std::vector<peer_id>& members, std::uint64_t group = 1) {
  std::vector<step_ptr> out;
  for (std::size_t i = 0; i < count; ++i) {
    out.push_back(step_from(at, members, group));
    at = out.back()->after;
  }
  return out;
}

/// A follower, and the records of others. Peers 2, 3, ... have one host each.
struct lab {
  using silent = collector<found>;
  mini_world world;
  std::map<peer_id, caf::actor> hosts;
  std::map<peer_id, chain_point> claimed;
  progress_table claims;
  chain_follower machine{{5s, 600s, 256}, initial, self};
  duration now = 1s;

  void claim(peer_id peer, const chain_point& what) {
    claimed[peer] = what;
    std::vector<shared<record>> records;
    for (const auto& [id, point] : claimed) {
      auto& address = hosts[id];
      if (!address)
        address = world.spawn<silent>(world.add_host(fmt::format("h{}", id)),
                                      std::make_shared<silent::log>());
      progress record_of;
      record_of.epoch = point.epoch;
      record_of.state = point.state;
      records.push_back(record{fmt::format("{:016x}", id), address, record_of.pack(), 0});
    }
    const auto owner = [this](const caf::actor& address) {
      for (const auto& [id, known] : hosts)
        if (known == address) return progress_table::owner{id, member(id)};
      return progress_table::owner{};
    };
    claims.replace(records, 1, now, owner, self);
  }
  std::vector<chain_follower::question> ask(std::optional<duration> max_wait = {}) {
    return machine.ask(claims, max_wait, now);
  }
  /// The answer of `peer` in one page.
  void answer(peer_id peer, const chain_point& common, const std::vector<step_ptr>& steps) {
    CHECK_FALSE(machine.answered(peer, common, steps, false, claims, now));
  }
};

} // namespace

TEST_CASE("chain follower: a branch leads nobody once all its members are on another one of the "
          "same epoch") {
  lab t;
  const auto left = step_from(initial, {2, 3}, 1), taken = step_from(initial, {2, 3}, 2);
  t.claim(2, left->after);
  REQUIRE(t.ask().size() == 1);
  t.answer(2, initial, {left});
  REQUIRE(t.machine.leading() == left->after);
  t.claim(2, taken->after);
  CHECK(t.ask().size() == 1);
  CHECK(t.machine.leading() == initial);
  t.answer(2, initial, {taken});
  CHECK(t.machine.leading() == taken->after);
}

TEST_CASE("chain follower: a claim alone does not lead, and its maker is asked once") {
  lab t;
  t.claim(2, {1'000'000, {6, 6}});
  const auto asked = t.ask();
  REQUIRE(asked.size() == 1);
  CHECK(asked[0].peer == 2);
  CHECK(asked[0].locator == std::vector{initial});
  CHECK(t.machine.leading() == initial);
  CHECK(t.machine.asks());
  t.now += 6s; // the peer does not answer
  CHECK(t.ask().empty());
  CHECK_FALSE(t.machine.asks());
  t.now += 3600s;
  CHECK(t.ask().empty());
  CHECK(t.machine.leading() == initial);
}

TEST_CASE("chain follower: the pause for a peer whose claims are never proven doubles") {
  lab t;
  std::vector<duration> asked_at;
  for (int i = 0; i < 4000; ++i, t.now += 1s) {
    t.claim(2, {1'000'000u + static_cast<std::uint64_t>(i), {6, 6}});
    if (!t.ask().empty()) asked_at.push_back(t.now);
  }
  REQUIRE(asked_at.size() >= 4);
  CHECK(asked_at.size() < 20);
  CHECK(asked_at[3] - asked_at[2] > asked_at[2] - asked_at[1]);
}

TEST_CASE("chain follower: a proven chain leads, and the peer follows it step by step") {
  lab t;
  const auto steps = steps_from(initial, 3, {2, 3});
  t.claim(2, steps[2]->after);
  REQUIRE(t.ask().size() == 1);
  t.answer(2, initial, steps);
  CHECK(t.machine.leading() == steps[2]->after);
  CHECK(t.machine.may_adopt(steps[1]->after));
  CHECK_FALSE(t.machine.may_adopt(initial));
  CHECK_FALSE(t.machine.may_adopt({2, {9, 9}}));
  CHECK(t.machine.step_from(steps[0]->after) == steps[1]);
  CHECK(t.machine.step_to(steps[0]->after) == steps[0]);
  t.machine.adopted(steps[1]->after);
  CHECK(t.machine.own().head() == steps[1]->after);
  CHECK(t.machine.leading() == steps[2]->after);
  t.machine.adopted(steps[2]->after);
  CHECK(t.machine.own().head() == steps[2]->after);
  CHECK(t.ask().empty());
}

TEST_CASE("chain follower: an answer in pages counts when it is complete") {
  lab t;
  const auto steps = steps_from(initial, 4, {2, 3});
  t.claim(2, steps[3]->after);
  REQUIRE(t.ask().size() == 1);
  const auto next = t.machine.answered(2, initial, {steps[0], steps[1]}, true, t.claims, t.now);
  REQUIRE(next);
  CHECK(next->locator == std::vector{steps[1]->after});
  CHECK(t.machine.leading() == initial);
  t.answer(2, steps[1]->after, {steps[2], steps[3]});
  CHECK(t.machine.leading() == steps[3]->after);
}

TEST_CASE("chain follower: an answer that does not hang together is refused") {
  const auto steps = steps_from(initial, 3, {2, 3});
  const auto refuses = [&](const chain_point& common, const std::vector<step_ptr>& answer) {
    lab t;
    t.claim(2, steps[2]->after);
    REQUIRE(t.ask().size() == 1);
    t.answer(2, common, answer);
    return t.machine.leading() == initial && !t.machine.asks();
  };
  CHECK_FALSE(refuses(initial, steps));
  CHECK(refuses({0, {7, 7}}, steps));
  CHECK(refuses(steps[0]->after, {steps[1], steps[2]}));
  CHECK(refuses(initial, {steps[0], steps[2]}));
  CHECK(refuses(initial, {steps[1]}));
  CHECK(refuses(initial, {}));
  // Nobody answers who was not asked.
  lab t;
  t.claim(2, steps[2]->after);
  REQUIRE(t.ask().size() == 1);
  t.answer(3, initial, steps);
  CHECK(t.machine.leading() == initial);
}

TEST_CASE(
    "chain follower: a member that steps alone leads nobody away, however many steps it takes") {
  lab t;
  // Peers 2 and 3 compute beside this one.
  t.claim(2, initial);
  t.claim(3, initial);
  const auto lone = steps_from(initial, 500, {9});
  t.claim(9, lone.back()->after);
  REQUIRE(t.ask().size() == 1);
  t.answer(9, initial, lone);
  CHECK(t.machine.leading() == initial);
  // A chain leads once most members support it.
  const auto many = steps_from(initial, 1, {2, 3}, 7);
  t.claim(2, many[0]->after);
  t.claim(3, many[0]->after);
  REQUIRE(t.ask().size() == 1);
  t.answer(t.machine.was_asked(2) ? 2 : 3, initial, many);
  CHECK(t.machine.leading() == many[0]->after);
}

TEST_CASE("chain follower: two forks, and the one with more supporters wins on both sides") {
  const auto large = steps_from(initial, 2, {2, 3, 4}, 1);
  const auto small = steps_from(initial, 9, {1, 5}, 2);
  lab of_small;
  for (const auto& step : small) of_small.machine.stepped(step);
  of_small.claim(2, large[1]->after);
  of_small.claim(5, small[8]->after);
  REQUIRE(of_small.ask().size() == 1);
  of_small.answer(2, initial, large);
  CHECK(of_small.machine.leading() == large[1]->after);
  of_small.machine.adopted(large[1]->after);
  CHECK(of_small.machine.own().head() == large[1]->after);

  lab of_large;
  for (const auto& step : large) of_large.machine.stepped(step);
  of_large.claim(2, large[1]->after);
  of_large.claim(5, small[8]->after);
  REQUIRE(of_large.ask().size() == 1);
  of_large.answer(5, initial, small);
  CHECK(of_large.machine.leading() == large[1]->after);
}

TEST_CASE("chain follower: of two proven branches ahead, the one with more supporters leads") {
  const auto long_one = steps_from(initial, 5, {2}, 1);
  const auto wide = steps_from(initial, 1, {3, 4}, 2);
  for (const bool wide_first : {false, true}) {
    CAPTURE(wide_first);
    lab t;
    t.claim(2, long_one.back()->after);
    t.claim(3, wide.back()->after);
    REQUIRE(t.ask().size() == 2);
    if (wide_first) t.answer(3, initial, wide);
    t.answer(2, initial, long_one);
    if (!wide_first) t.answer(3, initial, wide);
    CHECK(t.machine.leading() == wide.back()->after);
  }
}

TEST_CASE("chain follower: a full group needs no support by the members that it has no place for") {
  lab t;
  t.machine = chain_follower{{5s, 600s, 2}, initial, self};
  for (peer_id peer = 4; peer < 12; ++peer) t.claim(peer, initial);
  const auto pair = steps_from(initial, 1, {2, 3});
  t.claim(2, pair[0]->after);
  REQUIRE(t.ask().size() == 1);
  t.answer(2, initial, pair);
  CHECK(t.machine.leading() == pair[0]->after);
}

TEST_CASE("chain follower: the state with the most claimants is asked about first") {
  lab t;
  for (peer_id peer = 2; peer < 12; ++peer) t.claim(peer, {1'000'000 + peer, {6, peer}});
  t.claim(20, {3, {5, 5}});
  t.claim(21, {3, {5, 5}});
  const auto asked = t.ask();
  REQUIRE(asked.size() == chain_follower::most_questions);
  CHECK((asked[0].peer == 20 || asked[0].peer == 21));
  CHECK(t.ask().empty()); // all places are taken
  t.now += 5s;
  CHECK(t.ask().size() == chain_follower::most_questions);
}

TEST_CASE("chain follower: another claimant of the state is asked when the first one is silent") {
  lab t;
  t.claim(2, {3, {5, 5}});
  t.claim(3, {3, {5, 5}});
  const auto first = t.ask();
  REQUIRE(first.size() == 1);
  t.now += 5s;
  const auto second = t.ask();
  REQUIRE(second.size() == 1);
  CHECK(first[0].peer != second[0].peer);
}

TEST_CASE("chain follower: another claimant is asked at once when the first one is dead") {
  lab t;
  t.claim(2, {3, {5, 5}});
  t.claim(3, {3, {5, 5}});
  const auto first = t.ask();
  REQUIRE(first.size() == 1);
  CHECK(t.ask().empty());
  const auto address_of = [](const caf::actor& of) { return caf::actor_cast<caf::actor_addr>(of); };
  CHECK_FALSE(t.machine.lost(address_of(t.hosts.at(first[0].peer == 2 ? 3 : 2)), t.now));
  CHECK(t.machine.lost(address_of(first[0].to), t.now));
  CHECK_FALSE(t.machine.asks());
  const auto second = t.ask();
  REQUIRE(second.size() == 1);
  CHECK(first[0].peer != second[0].peer);
}

TEST_CASE(
    "chain follower: a peer in a round asks only about states that the round does not lead to") {
  lab t;
  t.claim(2, {1, {5, 5}});
  CHECK(t.ask(2s).empty());
  t.claim(3, {2, {5, 6}});
  REQUIRE(t.ask(2s).size() == 1);
  t.now += 2s; // the claim of the next epoch has become old
  CHECK(t.ask(2s).size() == 1);
}

TEST_CASE("chain follower: a peer whose chain is no news is not asked about that state again") {
  lab t;
  const auto own = steps_from(initial, 2, {1, 2});
  for (const auto& step : own) t.machine.stepped(step);
  t.claim(2, {9, {5, 5}});
  REQUIRE(t.ask().size() == 1);
  t.answer(2, initial, own);
  CHECK(t.machine.leading() == own[1]->after);
  CHECK(t.ask().empty());
}

TEST_CASE(
    "chain follower: its own step keeps a proven branch that has the step, and drops others") {
  const auto ahead = steps_from(initial, 3, {2, 3});
  lab t;
  t.claim(2, ahead[2]->after);
  REQUIRE(t.ask().size() == 1);
  t.answer(2, initial, ahead);
  t.machine.stepped(ahead[0]);
  CHECK(t.machine.leading() == ahead[2]->after);
  lab other;
  other.claim(2, ahead[2]->after);
  REQUIRE(other.ask().size() == 1);
  other.answer(2, initial, ahead);
  const auto own = step_from(initial, {1, 4, 5, 6}, 8);
  other.machine.stepped(own);
  CHECK(other.machine.leading() == own->after);
}

TEST_CASE("chain follower: a round needs more than a third of the members that take part") {
  lab t;
  CHECK(t.machine.members_needed(t.claims) == 1);
  for (peer_id peer = 2; peer < 10; ++peer) t.claim(peer, initial);
  CHECK(t.machine.members_needed(t.claims) == 4); // nine with this one
  // Only three of them, with this one, have taken part in the last steps.
  const auto steps = steps_from(initial, 3, {1, 2, 3});
  for (const auto& step : steps) t.machine.stepped(step);
  for (peer_id peer = 2; peer < 10; ++peer) t.claim(peer, steps[2]->after);
  CHECK(t.machine.members_needed(t.claims) == 2);
  t.machine = chain_follower{{5s, 600s, 2}, initial, self};
  for (peer_id peer = 2; peer < 30; ++peer) t.claim(peer, initial);
  CHECK(t.machine.members_needed(t.claims) == 2); // no group is larger
}

TEST_CASE(
    "chain follower: a round with a member that was in none of the last steps needs one more") {
  // Eight members took part in the last steps, and three others are near.
  const auto before = steps_from(initial, 3, {1, 2, 3, 4, 5, 6, 7, 8});
  const auto head = before[2]->after;
  const auto follows = [&](const std::vector<peer_id>& members) {
    lab t;
    for (const auto& step : before) t.machine.stepped(step);
    for (peer_id peer = 2; peer < 12; ++peer) t.claim(peer, head);
    CHECK(t.machine.members_needed(t.claims) == 4);
    const auto next = step_from(head, members);
    for (const auto peer : members) t.claim(peer, next->after);
    const auto asked = t.ask();
    REQUIRE(asked.size() == 1);
    t.answer(asked[0].peer, head, {next});
    return t.machine.leading() == next->after;
  };
  CHECK_FALSE(follows({2, 3, 9}));
  CHECK(follows({2, 3, 4, 9}));
}

TEST_CASE("chain follower: members that take part in no steps keep nobody from a chain") {
  lab t;
  const auto own = steps_from(initial, 3, {1, 2});
  for (const auto& step : own) t.machine.stepped(step);
  for (peer_id peer = 10; peer < 20; ++peer) t.claim(peer, own[2]->after);
  const auto next = step_from(own[2]->after, {2});
  t.claim(2, next->after);
  REQUIRE(t.ask().size() == 1);
  t.answer(2, own[2]->after, {next});
  CHECK(t.machine.leading() == next->after);
}

TEST_CASE("chain follower: of two small groups that part the one that others follow wins") {
  // Members 1 to 6 took part in the last steps. Then 1 and 2 make a step, and later 3 and 4.
  const auto before = steps_from(initial, 3, {1, 2, 3, 4, 5, 6});
  auto first = step_from(before[2]->after, {1, 2}, 7),
       second = step_from(before[2]->after, {3, 4}, 8);
  // The fork rule alone prefers the smaller id. The group without followers has it here.
  if (second->after.state < first->after.state) {
    first = step_from(before[2]->after, {1, 2}, 8);
    second = step_from(before[2]->after, {3, 4}, 7);
  }
  lab t;
  for (const auto& step : before) t.machine.stepped(step);
  t.machine.stepped(first);
  for (peer_id peer : {3u, 4u}) t.claim(peer, second->after);
  REQUIRE(t.ask().size() == 1);
  t.answer(t.machine.was_asked(3) ? 3 : 4, before[2]->after, {second});
  CHECK(t.machine.leading() == first->after);
  // A member that took part in no step changes nothing.
  t.claim(9, second->after);
  CHECK(t.ask().empty());
  CHECK(t.machine.leading() == first->after);
  // Another one follows the other group. The chain is known, so nobody is asked again.
  t.claim(5, second->after);
  CHECK(t.ask().empty());
  CHECK(t.machine.leading() == second->after);
  t.machine.adopted(second->after);

  // The other group keeps its step.
  lab other;
  for (const auto& step : before) other.machine.stepped(step);
  other.machine.stepped(second);
  other.claim(5, second->after);
  other.claim(2, first->after);
  REQUIRE(other.ask().size() == 1);
  other.answer(2, before[2]->after, {first});
  other.ask();
  CHECK(other.machine.leading() == second->after);
}
