#include "actors/dht/messages.hpp"
#include "actors/reachability.hpp"
#include "tests/actors/support/mini_world.hpp"

#include <caf/actor_cast.hpp>
#include <doctest/doctest.h>

#include <algorithm>

using namespace shoal;
using namespace shoal::actors;
using namespace shoal::actors::testing;
using namespace std::chrono_literals;

namespace {

/// One peer that inquires, and others whose answers the test makes up.
struct fixture {
  mini_world world;
  std::vector<caf::actor> peers;
  caf::actor self;
  std::unique_ptr<reachability> rules;

  explicit fixture(std::size_t others = 5) {
    using silent = collector<found>;
    auto log = std::make_shared<silent::log>();
    auto& host = world.add_host("h");
    self = world.spawn<silent>(host, log);
    for (std::size_t i = 0; i < others; ++i) peers.push_back(world.spawn<silent>(host, log));
    reachability_config config;
    config.enabled = true;
    rules = std::make_unique<reachability>(config, rng(1));
  }

  auto look(std::size_t open = 0, const std::vector<caf::actor>& shards = {}) {
    std::vector<reachability::other> others;
    for (std::size_t i = 0; i < peers.size(); ++i) others.push_back({peers[i], i < open});
    return rules->look(std::move(others), self, shards);
  }
  void answer(const caf::actor& by, std::uint64_t seen, int opened = -1) {
    auto sender = caf::actor_cast<caf::strong_actor_ptr>(by);
    rules->on(address_answer{rules->token(), seen}, sender);
    if (opened >= 0)
      rules->on(dial_answer{rules->token(), static_cast<std::uint8_t>(opened)}, sender);
  }
  /// The verdict when the queried peers see these addresses and `opened` of them report a
  /// successful dialling.
  reach learn(std::vector<std::uint64_t> seen, std::size_t opened = 0) {
    auto queries = look();
    REQUIRE(queries.size() == seen.size());
    for (std::size_t i = 0; i < seen.size(); ++i)
      answer(queries[i].first, seen[i], i < opened ? 1 : 0);
    CHECK(rules->complete());
    rules->conclude(1s);
    return rules->known();
  }
};

} // namespace

TEST_CASE("one address for all is a cone, several are symmetric, none is outbound_only, a dial "
          "back is open") {
  CHECK(fixture().learn({7, 7, 7, 7, 7}) == reach::cone);
  CHECK(fixture().learn({7, 8, 9, 10, 11}) == reach::symmetric);
  CHECK(fixture().learn({0, 0, 0, 0, 0}) == reach::outbound_only);
  CHECK(fixture().learn({7, 7, 7, 7, 7}, 5) == reach::open);
}

TEST_CASE("a minority of false answers changes nothing") {
  CHECK(fixture().learn({7, 7, 7, 0, 9}) == reach::cone);
  CHECK(fixture().learn({0, 0, 0, 7, 7}) == reach::outbound_only);
  CHECK(fixture().learn({7, 8, 9, 7, 0}) == reach::symmetric);
  CHECK(fixture().learn({7, 7, 7, 7, 7}, 2) == reach::cone);
  CHECK(fixture().learn({0, 0, 1, 2, 3}, 3) == reach::open);
}

TEST_CASE("the third host of a query is another peer, an open one if there is one") {
  fixture f;
  for (const auto& [to, query] : f.look(2)) {
    CHECK(query.third != to);
    CHECK(query.third != f.self);
    CHECK((query.third == f.peers[0] || query.third == f.peers[1]));
  }
  fixture pair(2);
  for (const auto& [to, query] : pair.look(1)) CHECK(query.third != to);
  fixture single(1);
  CHECK(!single.look().front().second.third);
}

TEST_CASE("after a failed inquiry without open peers, a data shard is the third host") {
  fixture f(3);
  const auto shard = f.peers.back();
  f.peers.pop_back();
  for (const auto& [to, query] : f.look(0, {shard})) CHECK(query.third != shard);
  f.rules->conclude(1s);
  for (const auto& [to, query] : f.look(0, {shard})) CHECK(query.third == shard);
  for (const auto& [to, query] : f.look(2, {shard})) CHECK(query.third != shard);
  // The only other peer may itself be unreachable. Its report of a successful dialling is enough.
  fixture pair(1);
  pair.look();
  pair.rules->conclude(1s);
  const auto queries = pair.look(0, {shard});
  CHECK(queries.front().second.third == shard);
  pair.answer(queries.front().first, 7, 1);
  CHECK(pair.rules->complete());
  pair.rules->conclude(1s);
  CHECK(pair.rules->known() == reach::open);
}

TEST_CASE("answers of strangers and late, repeated or senseless answers are ignored") {
  fixture f(3);
  auto old = f.look();
  const auto stale = f.rules->token();
  f.rules->conclude(1s);
  CHECK(f.rules->known() == reach::unknown);
  auto queries = f.look();
  auto asked = caf::actor_cast<caf::strong_actor_ptr>(queries[0].first);
  f.rules->on(address_answer{stale, 9}, asked);
  f.rules->on(dial_answer{stale, 1}, asked);
  f.rules->on(address_answer{f.rules->token(), 9}, caf::actor_cast<caf::strong_actor_ptr>(f.self));
  f.rules->on(dial_answer{f.rules->token(), 1}, nullptr);
  f.answer(queries[0].first, 7, 0);
  f.answer(queries[1].first, 7);
  f.answer(queries[0].first, ~std::uint64_t{0}, 255);
  CHECK(!f.rules->complete());
  CHECK(f.rules->conclude(2s));
  CHECK(f.rules->known() == reach::cone);
  f.rules->on(address_answer{f.rules->token(), 1}, asked); // the inquiry is over
}

TEST_CASE("a failed inquiry keeps the earlier verdict for a while, and the next one comes soon") {
  fixture f(3);
  CHECK(f.learn({7, 7, 7}) == reach::cone);
  CHECK(f.rules->next_look() == 1s + 5min);
  for (int i = 0; i < 2; ++i) {
    f.look();
    CHECK(!f.rules->conclude(10s));
    CHECK(f.rules->known() == reach::cone);
  }
  f.look();
  CHECK(f.rules->conclude(10s));
  CHECK(f.rules->known() == reach::unknown);
  CHECK(f.rules->next_look() == 11s);
  fixture one(1);
  auto query = one.look();
  one.answer(query[0].first, 7, 0);
  one.rules->conclude(1s);
  CHECK(one.rules->known() == reach::unknown); // either a cone or symmetric
  fixture alone(0);
  CHECK(alone.look().empty());
  CHECK(!alone.rules->looking());
}

TEST_CASE("a silent peer is queried once more, with the same third host") {
  fixture f(3);
  auto first = f.look();
  f.answer(first[0].first, 7, 0);
  f.answer(first[1].first, 7);
  auto rest = f.rules->again();
  REQUIRE(rest.size() == 2);
  CHECK(rest[0].first == first[1].first);
  CHECK(rest[0].second.third == first[1].second.third);
  CHECK(rest[1].first == first[2].first);
  f.rules->conclude(1s);
  CHECK(f.rules->again().empty());
}

TEST_CASE("a helper passes on only the answer of the third host") {
  fixture f(3);
  const auto asker = f.peers[0], third = f.peers[1], stranger = f.peers[2];
  const auto of = [](const caf::actor& a) { return caf::actor_cast<caf::strong_actor_ptr>(a); };
  const member_id member{1, 1};
  dial_helper helper;
  CHECK(!helper.asked({asker, {}, 5}, member, f.self, 0s, 4s));
  auto request = helper.asked({asker, third, 5}, member, f.self, 0s, 4s);
  REQUIRE(request);
  CHECK(request->target == asker);
  CHECK(!helper.passed_on({request->token, 1}, of(stranger)));
  CHECK(!helper.passed_on({request->token + 1, 1}, of(third)));
  auto reply = helper.passed_on({request->token, 1}, of(third));
  REQUIRE(reply);
  CHECK(reply->to == asker);
  CHECK(reply->what.token == 5);
  CHECK(reply->what.opened == 1);
  CHECK(!helper.passed_on({request->token, 1}, of(third)));

  auto dialling = helper.third(*request, member);
  REQUIRE(dialling);
  CHECK(!helper.done({*dialling + 1, true}));
  CHECK(helper.done({*dialling, false})->what.opened == 0);
}

TEST_CASE("a member cannot fill the places of a helper") {
  fixture f(3);
  const auto asker = f.peers[0], third = f.peers[1];
  const auto of = [](std::uint64_t i) { return member_id{0, i}; };
  dial_helper helper;
  const auto asked = [&](std::uint64_t by, duration now) {
    return helper.asked({asker, third, 5}, of(by), f.self, now, 4s).has_value();
  };
  std::size_t taken = 0;
  for (int i = 0; i < 1000; ++i) taken += asked(0, 1s) ? 1 : 0;
  CHECK(taken == dial_helper::most_asked_by_member);
  CHECK(asked(1, 1s));
  for (std::uint64_t i = 2; i < 1000; ++i) taken += asked(i, 1s) ? 1 : 0;
  CHECK(taken + 1 == dial_helper::most_open);
  CHECK(asked(0, 6s));

  std::size_t dials = 0;
  for (int i = 0; i < 1000; ++i) dials += helper.third({asker, third, 5}, of(0)) ? 1 : 0;
  CHECK(dials == dial_helper::most_dials_for_member);
  CHECK(helper.third({asker, third, 5}, of(1)));
}

TEST_CASE("a third host dials only for the sender of the request") {
  fixture f(3);
  auto& host = f.world.add_host("third");
  dial_helper helper;
  const auto sender = caf::actor_cast<caf::strong_actor_ptr>(f.peers[0]);
  CHECK(helper.dial({f.peers[0], f.peers[2], 5}, sender, host, f.self, 4s));
  CHECK_FALSE(helper.dial({f.peers[1], f.peers[2], 5}, sender, host, f.self, 4s));
  CHECK_FALSE(helper.dial({f.peers[0], nullptr, 5}, sender, host, f.self, 4s));
  CHECK_FALSE(helper.dial({f.peers[0], f.peers[2], 5}, nullptr, host, f.self, 4s));
}

TEST_CASE("an inquiry queries a member once, however many peers it shows") {
  fixture f(9);
  std::vector<reachability::other> others;
  for (std::size_t i = 0; i < f.peers.size(); ++i)
    others.push_back({f.peers[i], false, member_id{1, i < 7 ? 0 : i}});
  std::size_t of_liar = 0;
  const auto queries = f.rules->look(others, f.self);
  CHECK(queries.size() == 3);
  for (const auto& [to, query] : queries) {
    const auto at = std::find(f.peers.begin(), f.peers.end(), to) - f.peers.begin();
    of_liar += at < 7 ? 1 : 0;
    // The liar says that it was dialled; the two others say the truth.
    f.answer(to, 7, at < 7 ? 1 : 0);
  }
  CHECK(of_liar == 1);
  f.rules->conclude(1s);
  CHECK(f.rules->known() == reach::cone);
}

TEST_CASE("without reachability checks a peer counts as open") {
  reachability all_open({}, rng(1));
  CHECK(all_open.known() == reach::open);
  CHECK(all_open.settled());
}
