// The DHT's decisions without actors: ids, buckets, look-ups, records and their signatures.
#include "actors/dht/blacklist.hpp"
#include "actors/dht/clock_votes.hpp"
#include "actors/dht/iterative_lookup.hpp"
#include "actors/dht/record_rules.hpp"
#include "actors/dht/record_store.hpp"
#include "actors/dht/routing_table.hpp"
#include "actors/dht/signed_record.hpp"
#include "tests/actors/support/mini_world.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

using namespace shoal;
using namespace shoal::actors;
using namespace shoal::actors::testing;
using namespace std::chrono_literals;

namespace {

class silent : public caf::event_based_actor {
public:
  silent(caf::actor_config& config, host&) : caf::event_based_actor(config) {}
  caf::behavior make_behavior() override {
    return {[](const tick&) {}};
  }
};

struct people {
  mini_world world;
  mini_host& here = world.add_host("here");
  caf::actor somebody = world.spawn<silent>(here), another = world.spawn<silent>(here);
  rng draws = stream(1, "dht_parts_test");

  node_id random_id() {
    return {draws.next(), draws.next(), static_cast<std::uint32_t>(draws.next())};
  }
  contact at(const node_id& id) { return {id, somebody}; }
};

/// Two owners, and nothing else.
struct two_owners {
  mini_world world;
  mini_host &mine = world.add_host("mine"), &other = world.add_host("other");
};

signed_record signed_by(const host& who, const std::string& key, const std::string& subkey,
                        char value, std::int64_t expires, std::uint64_t version = 1,
                        bool withdrawn = false) {
  record entry;
  entry.subkey = subkey;
  entry.value = payload{std::vector<std::byte>{static_cast<std::byte>(value)}};
  entry.expires_utc_ns = expires;
  return sign_record(who, key, std::move(entry), version, withdrawn);
}

} // namespace

TEST_CASE(
    "a host has one record under each key of a pipeline, for minutes, and under its own name") {
  for (const std::string_view key : {"pipeline.r.trainers", "pipeline.r.stage.3"}) {
    const auto& rule = rule_of(key);
    CHECK(rule.one_per_owner);
    CHECK(rule.max_lifetime <= std::chrono::minutes(10));
    CHECK(is_subkey_of(rule.form, "0000000000000007", 7));
    CHECK(!is_subkey_of(rule.form, "0000000000000008", 7));
  }
}

TEST_CASE("the XOR metric is a metric, and the common prefix counts its leading zeros") {
  people p;
  for (int i = 0; i < 200; ++i) {
    auto a = p.random_id(), b = p.random_id();
    CHECK(distance(a, a).is_zero());
    CHECK(distance(a, b) == distance(b, a));
    for (unsigned prefix : {0u, 1u, 5u, 63u, 64u, 65u, 127u, 128u, 130u, 159u})
      CHECK(common_prefix(a, random_at(a, prefix, p.draws)) == prefix);
    CHECK(common_prefix(a, a) == 160);
  }
  CHECK(node_id::of_key("a") != node_id::of_key("b"));
  CHECK(node_id{1, 2, 3}.hex() == "0000000000000001000000000000000200000003");
}

TEST_CASE("a bucket keeps live contacts, and replaces a failed one by the newest that waits") {
  people p;
  auto self = p.random_id();
  routing_table table(self, 3);
  std::vector<node_id> ids;
  for (int i = 0; i < 5; ++i) ids.push_back(random_at(self, 0, p.draws));
  for (int i = 0; i < 3; ++i)
    CHECK(table.seen(p.at(ids[i]), i * 1s) == routing_table::arrival::added);
  CHECK(table.seen(p.at(ids[3]), 3s) == routing_table::arrival::waits);
  CHECK(table.seen(p.at(ids[4]), 4s) == routing_table::arrival::waits);
  CHECK(table.seen(p.at(ids[0]), 5s) == routing_table::arrival::known);
  CHECK(table.stalest(ids[4], 10s, 5s)->id == ids[1]);
  CHECK_FALSE(table.stalest(ids[4], 10s, 20s));
  REQUIRE(table.silent(10, 10s, 8s).size() == 2);
  CHECK(table.silent(1, 10s, 5s)[0].id == ids[1]);
  table.failed(ids[1]);
  CHECK_FALSE(table.contains(ids[1]));
  CHECK(table.contains(ids[4]));
  CHECK_FALSE(table.contains(ids[3]));
  CHECK(table.size() == 3);
  table.remove(ids[4]);
  CHECK(table.contains(ids[3]));
  // No contact waits any more, so one failure is forgiven.
  table.failed(ids[3]);
  table.failed(ids[3]);
  CHECK(table.contains(ids[3]));
  table.failed(ids[3]);
  CHECK_FALSE(table.contains(ids[3]));
  CHECK(table.seen(p.at(self), 6s) == routing_table::arrival::refused);
  // Another node of this node's own member is no contact.
  CHECK(table.seen(p.at({self.high, self.middle, self.low + 1}), 6s) ==
        routing_table::arrival::refused);
}

TEST_CASE("the table names the nearest contacts that it knows") {
  people p;
  auto self = p.random_id(), target = p.random_id();
  routing_table table(self, 1000);
  std::vector<node_id> ids;
  for (int i = 0; i < 300; ++i) {
    ids.push_back(p.random_id());
    table.seen(p.at(ids.back()), 0s);
  }
  std::sort(ids.begin(), ids.end(),
            [&](auto& a, auto& b) { return distance(a, target) < distance(b, target); });
  auto found = table.nearest(target, 20, [&](const contact& c) { return c.id == ids[0]; });
  REQUIRE(found.size() == 20);
  for (std::size_t i = 0; i < 20; ++i) CHECK(found[i].id == ids[i + 1]);
  // The bucket of a target has any place among the others, the own id has none.
  for (int i = 0; i < 200; ++i) {
    if (i % 2 == 0)
      target = i == 0 ? self : random_at(self, static_cast<unsigned>(i) / 2, p.draws);
    else
      target = p.random_id();
    std::sort(ids.begin(), ids.end(),
              [&](auto& a, auto& b) { return distance(a, target) < distance(b, target); });
    const auto count = static_cast<std::size_t>(i) * 2;
    found = table.nearest(target, count);
    REQUIRE(found.size() == std::min(count, ids.size()));
    for (std::size_t n = 0; n < found.size(); ++n) CHECK(found[n].id == ids[n]);
  }
}

TEST_CASE("the table names the contacts that were silent longest, and no others") {
  people p;
  const auto self = p.random_id();
  routing_table table(self, 1000);
  std::vector<contact> all;
  for (int i = 0; i < 50; ++i) {
    all.push_back(p.at(p.random_id()));
    table.seen(all.back(), 1s * i);
  }
  for (const std::size_t count : {0U, 1U, 7U, 80U}) {
    const auto silent = table.silent(count, 60s, 30s);
    REQUIRE(silent.size() == std::min<std::size_t>(count, 31));
    for (std::size_t i = 0; i < silent.size(); ++i) CHECK(silent[i].id == all[i].id);
  }
}

TEST_CASE("the time for which a silent node is left alone doubles, and one answer ends it") {
  blacklist list(5s);
  const contact::place who{{1, 2, 3}, 7};
  CHECK_FALSE(list.blocks(who, 0s));
  list.failed(who, 0s, 0s);
  CHECK(list.blocks(who, 5s - 1ns));
  CHECK_FALSE(list.blocks(who, 5s));
  for (int i = 0; i < 5; ++i)
    // The requests were sent one after the other, and one outage made all of them fail.
    list.failed(who, 5s, 10s);
  CHECK(list.blocks(who, 20s - 1ns));
  CHECK_FALSE(list.blocks(who, 20s));
  list.alive(who);
  CHECK_FALSE(list.blocks(who, 20s));
  for (std::uint64_t i = 0; i < 10'000; ++i) list.failed({{i, 0, 0}, 7}, 30s, 30s);
  CHECK(list.size() <= 4097);
}

TEST_CASE("a node that was silent for long is asked after a sixteenth of that time, and at least "
          "after about a minute") {
  blacklist list(1s);
  const contact::place who{{1, 2, 3}, 7};
  duration now{};
  std::size_t asked = 0;
  // The node is asked as early as possible, and does not answer.
  const auto until_silent_for = [&](duration silence) {
    for (; now < silence; now = list.until(who), ++asked) list.failed(who, now, now);
    return list.until(who) - now;
  };
  CHECK(until_silent_for(60s) <= 64s);
  CHECK(asked == 6);
  CHECK(until_silent_for(1000s) <= 64s);
  CHECK(asked < 24);
  CHECK(until_silent_for(1h) <= 1h / 16 + 15s);
  const auto before = asked;
  until_silent_for(24h);
  CHECK(asked < before + 110);
  CHECK(list.until(who) - now <= 1024s);
}

TEST_CASE("an iterative look-up finds the nearest nodes within log2 of their number of hops") {
  people p;
  constexpr std::size_t nodes = 1024;
  std::vector<node_id> ids;
  for (std::size_t i = 0; i < nodes; ++i) ids.push_back(p.random_id());
  std::vector<routing_table> tables;
  for (auto& id : ids) {
    tables.emplace_back(id, 20);
    for (int i = 0; i < 600; ++i) tables.back().seen(p.at(ids[p.draws.below(nodes)]), 0s);
  }
  // Each node knows its neighbours, as after joining.
  for (std::size_t i = 0; i < nodes; ++i) {
    auto sorted = ids;
    std::partial_sort(sorted.begin(), sorted.begin() + 21, sorted.end(),
                      [&](auto& a, auto& b) { return distance(a, ids[i]) < distance(b, ids[i]); });
    for (int k = 1; k <= 20; ++k) tables[i].seen(p.at(sorted[k]), 0s);
  }
  auto table_of = [&](const node_id& id) -> routing_table& {
    return tables[static_cast<std::size_t>(std::find(ids.begin(), ids.end(), id) - ids.begin())];
  };
  std::array<double, 3> questions{};
  for (const std::size_t paths : {1u, 2u}) {
    double hops = 0;
    for (int i = 0; i < 100; ++i) {
      auto target = p.random_id();
      iterative_lookup search(target, 5, 3, false, paths);
      search.start(tables[p.draws.below(nodes)].nearest(target, 20));
      while (!search.done()) {
        std::vector<contact> asked;
        while (auto next = search.next()) asked.push_back(*next);
        CHECK(asked.size() <= (paths == 1 ? 3 : 4));
        REQUIRE_FALSE(asked.empty());
        for (auto& who : asked) {
          if (p.draws.below(10) == 0) {
            search.failed(who);
            continue;
          }
          search.heard(who, table_of(who.id).nearest(target, 20));
          search.answered(who);
        }
      }
      CHECK(search.nearest(5).size() == 5);
      CHECK(search.hops() <= 10);
      hops += search.hops();
      CHECK(search.asked() < 40);
      questions[paths] += static_cast<double>(search.asked());
    }
    CHECK(hops / 100 <= 10);
  }
  MESSAGE("questions of a look-up: " << questions[1] / 100 << " on one path, " << questions[2] / 100
                                     << " on two");
  // So only look-ups that join or read take two (dht_config.hpp).
  CHECK(questions[2] <= 1.4 * questions[1]);
}

TEST_CASE("a look-up waits for slow nodes only if no other node is left") {
  people p;
  const node_id target{0, 0, 0};
  const auto near = p.at({0, 1, 0}), far = p.at({0, 8, 0});
  iterative_lookup search(target, 1, 1);
  search.start({near, far});
  CHECK(search.next()->id == near.id);
  CHECK_FALSE(search.next());
  search.slow(near);
  CHECK(search.next()->id == far.id);
  search.answered(far);
  CHECK(search.done());
  search.answered(near); // late, and nearer
  CHECK(search.nearest(1)[0].id == near.id);

  iterative_lookup alone(target, 1, 1);
  alone.start({near});
  (void)alone.next();
  alone.slow(near);
  CHECK_FALSE(alone.done());
  alone.failed(near);
  CHECK(alone.done());
  CHECK(alone.nearest(1).empty());
  CHECK(alone.hops() == 0);

  // With one answer, the look-up ends without the slow node.
  iterative_lookup few(target, 5, 3);
  few.start({near, far});
  (void)few.next();
  (void)few.next();
  few.slow(near);
  CHECK_FALSE(few.done());
  few.answered(far);
  CHECK(few.done());

  // A look-up for values waits for one of the nearest nodes. The others have none.
  iterative_lookup reads(target, 1, 1, true);
  reads.start({near, far});
  (void)reads.next();
  reads.slow(near);
  (void)reads.next();
  reads.answered(far);
  CHECK_FALSE(reads.done());
  CHECK(reads.nearest(1)[0].id == far.id);
  CHECK(reads.nearest_living(1)[0].id == near.id);
  reads.failed(near);
  CHECK(reads.done());
  CHECK(reads.nearest_living(1)[0].id == far.id);

  iterative_lookup strangers(target, 1, 1);
  strangers.start({far});
  // This node was not asked.
  strangers.heard(far, {near});
  CHECK(strangers.next()->id == far.id);
}

TEST_CASE("a signature covers each field, the key and the owner") {
  people p;
  auto& other = p.world.add_host("other");
  const auto theirs = p.world.spawn<silent>(other);
  auto good = signed_by(p.here, "k", "s", 'a', 100, 7);
  good = sign_record(p.here, "k", {"s", p.somebody, good.entry.value, 100}, 7, false);
  CHECK(good.entry.owner == p.here.key());
  signature_cache signatures;
  CHECK(not_genuine(other, "k", good, nullptr).empty());
  CHECK(not_genuine(other, "k", good, &signatures).empty());
  CHECK(not_genuine(other, "k", good, &signatures).empty());
  CHECK_FALSE(not_genuine(other, "l", good, &signatures).empty());
  auto bad = [&](auto change) {
    auto copy = good;
    change(copy);
    CHECK_FALSE(not_genuine(other, "k", copy, &signatures).empty());
  };
  bad([](signed_record& r) { r.entry.subkey = "t"; });
  bad([](signed_record& r) { r.entry.address = nullptr; });
  bad([&](signed_record& r) { r.entry.address = p.another; });
  bad([&](signed_record& r) { r.entry.address = theirs; });
  bad([](signed_record& r) { r.entry.value = payload{std::vector<std::byte>(2)}; });
  bad([](signed_record& r) { r.entry.value = payload::size_only(1); });
  bad([](signed_record& r) { ++r.entry.expires_utc_ns; });
  bad([](signed_record& r) { ++r.version; });
  bad([](signed_record& r) { r.withdrawn = 1; });
  bad([&](signed_record& r) { r.entry.owner = other.key(); });
  bad([](signed_record& r) { ++r.signature_r.a; });
  bad([](signed_record& r) { ++r.signature_s.d; });
}

TEST_CASE(
    "a member's record for another host's address is refused, although its signature is good") {
  people p;
  auto& liar = p.world.add_host("liar");
  const auto record_at = [&](const caf::actor& address) {
    return sign_record(liar, "k", {"s", address, {}, 100}, 1, false);
  };
  CHECK(not_genuine(p.here, "k", record_at(nullptr), nullptr).empty());
  CHECK(not_genuine(p.here, "k", record_at(p.world.spawn<silent>(liar)), nullptr).empty());
  CHECK(not_genuine(p.here, "k", record_at(p.somebody), nullptr) ==
        "the address is not on its owner's host");
}

TEST_CASE("a sub-key that names a peer names the peer at the record's address") {
  people p; // peer 1
  auto& liar = p.world.add_host("liar");
  REQUIRE(liar.id() == 2);
  const auto address = p.world.spawn<silent>(liar);
  const auto fine = [&](const char* key, const char* subkey) {
    return not_genuine(p.here, key, sign_record(liar, key, {subkey, address, {}, 100}, 1, false),
                       nullptr)
        .empty();
  };
  CHECK(fine("progress", "0000000000000002"));
  CHECK_FALSE(fine("progress", "0000000000000001"));
  CHECK_FALSE(fine("progress", "2"));
  CHECK(fine("round.7.abc", "0000000000000002"));
  CHECK_FALSE(fine("round.7.abc", "0000000000000001"));
  CHECK(fine("data.shard", "shard#2"));
  CHECK_FALSE(fine("data.shard", "shard#1"));
  CHECK(fine("other", "0000000000000001"));
}

TEST_CASE("a record that the cache has forgotten is checked again") {
  two_owners p;
  signature_cache few(1);
  const record entry{"s", nullptr, payload{std::vector<std::byte>(1)}, 100};
  const auto good = sign_record(p.mine, "k", entry, 7, false, &few);
  for (std::uint64_t version = 8; version < 12; ++version)
    (void)sign_record(p.mine, "k", entry, version, false, &few);
  CHECK_FALSE(few.knows("k", good));
  CHECK(not_genuine(p.other, "k", good, &few).empty());
  auto bad = good;
  ++bad.version;
  CHECK_FALSE(not_genuine(p.other, "k", bad, &few).empty());
}

TEST_CASE("the latest version wins, then the expiration, then the withdrawal, and a sub-key is not "
          "taken by its first owner") {
  two_owners p;
  auto &mine = p.mine, &other = p.other;
  record_store store;
  CHECK(*store.put("k", signed_by(mine, "k", "s", 'a', 100, 1), 0));
  CHECK(*store.put("k", signed_by(mine, "k", "s", 'b', 50, 2), 0));
  CHECK_FALSE(*store.put("k", signed_by(mine, "k", "s", 'a', 100, 1), 0));
  CHECK_FALSE(*store.put("k", signed_by(mine, "k", "s", 'b', 50, 2), 0));
  CHECK(*store.put("k", signed_by(mine, "k", "s", 'c', 100, 2), 0));
  CHECK(*store.put("k", signed_by(other, "k", "s", 'x', 200, 3), 0));
  CHECK(static_cast<char>(store.find("k", "s", mine.key())->entry.value.bytes()[0]) == 'c');
  CHECK(static_cast<char>(store.find("k", "s", other.key())->entry.value.bytes()[0]) == 'x');
  CHECK(*store.put("k", signed_by(mine, "k", "s", 'c', 100, 2, true), 0));
  CHECK(store.find("k", "s", mine.key())->withdrawn == 1);
  CHECK(store.size() == 2);
  store.drop_expired(200);
  CHECK(store.size() == 0);
  CHECK_FALSE(store.has_key("k"));
  CHECK_FALSE(*store.put("k", signed_by(mine, "k", "s", 'a', 100, 1), 100)); // expired on its way
}

TEST_CASE("a reader gets the changes since its last question, in pieces") {
  two_owners p;
  auto& mine = p.mine;
  record_store store;
  for (char c = 'a'; c <= 'j'; ++c) (void)store.put("k", signed_by(mine, "k", {c}, c, 100), 0);
  (void)store.put("other", signed_by(mine, "other", "z", 'z', 100), 0);
  auto first = store.after("k", 0, 4);
  CHECK(first.records.size() == 4);
  CHECK(first.more);
  auto second = store.after("k", first.sequence, 100);
  CHECK(second.records.size() == 6);
  CHECK_FALSE(second.more);
  CHECK(store.after("k", second.sequence, 100).records.empty());
  CHECK(store.after("k", second.sequence, 100).sequence == second.sequence);
  (void)store.put("k", signed_by(mine, "k", "c", 'C', 100, 2), 0);
  auto third = store.after("k", second.sequence, 100);
  REQUIRE(third.records.size() == 1);
  CHECK(third.records[0]->entry.subkey == "c");
  // The reader has a record of the owner from this store, so it knows the owner.
  CHECK(first.new_owners.size() == 4);
  CHECK(third.new_owners.empty());
  (void)store.put("k", signed_by(p.other, "k", "c", 'd', 100), 0);
  CHECK(store.after("k", third.sequence, 100).new_owners == std::vector{p.other.key()});
  CHECK(store.after("nothing", 5, 100).sequence == 0);
}

TEST_CASE("a store refuses records beyond its limits, and has room again when records expire") {
  two_owners p;
  auto& mine = p.mine;
  record_limits limits;
  limits.max_keys = 2;
  limits.max_records_per_key = 2;
  limits.max_records = 3;
  limits.max_key_bytes = 8;
  limits.max_value_bytes = 4;
  limits.max_lifetime = 1h;
  record_store store(limits);
  auto put = [&](const std::string& key, const std::string& subkey, std::int64_t expires = 100,
                 std::int64_t utc = 0) {
    auto out = store.put(key, signed_by(mine, key, subkey, 'v', expires), utc);
    return out.ok() && *out;
  };
  CHECK(put("k", "a"));
  CHECK(put("k", "b"));
  CHECK_FALSE(put("k", "c"));
  CHECK(put("l", "a"));
  CHECK_FALSE(put("l", "b"));
  CHECK_FALSE(put("m", "a"));
  CHECK_FALSE(put("", "a"));
  CHECK_FALSE(put("much too long", "a"));
  CHECK_FALSE(put("k", "much too long", 100));
  CHECK_FALSE(put("k", "a", duration(2h).count()));
  signed_record large;
  large.entry.expires_utc_ns = 100;
  large.entry.value = payload{std::vector<std::byte>(5)};
  CHECK_FALSE(store.put("l", large, 0).ok());
  large.entry.value = payload::size_only(1);
  CHECK_FALSE(store.put("l", large, 0).ok());
  store.drop_expired(100);
  CHECK(put("m", "a", 200, 100));
}

TEST_CASE("delays never move right clocks, and wrong clocks neither move others nor stay wrong") {
  const auto id = [](std::uint64_t n) { return member_id{0, n}; };
  constexpr std::int64_t utc = 1'700'000'000'000'000'000; // at steady time 0
  const auto own_at = [&](duration now) { return utc + now.count(); };
  clock_votes votes;
  CHECK(votes.utc_ns(own_at(5s), 5s) == own_at(5s));
  // The report was made at some time between question and answer.
  votes.told(id(1), own_at(10s), 10s, 13s);
  votes.told(id(2), own_at(13s), 10s, 13s);
  votes.told(id(3), own_at(11s), 10s, 13s);
  CHECK(votes.utc_ns(own_at(20s), 20s) == own_at(20s));
  // The own clock is set forward or back. The result follows the others, as near to the own clock
  // as their reports allow.
  CHECK(votes.utc_ns(own_at(20s) + duration(1h).count(), 20s) <=
        own_at(20s) + duration(3s).count());
  CHECK(votes.utc_ns(own_at(20s) - duration(1h).count(), 20s) >=
        own_at(20s) - duration(3s).count());
  // One of four other clocks is wrong.
  votes.told(id(4), own_at(11s) + duration(1h).count(), 10s, 13s);
  CHECK(votes.utc_ns(own_at(20s), 20s) == own_at(20s));
  // Against only one other clock, a node believes its own.
  clock_votes two;
  two.told(id(1), own_at(10s) + duration(1h).count(), 10s, 10s);
  CHECK(two.utc_ns(own_at(20s), 20s) == own_at(20s));
  // An impossible time is no vote, and each member has one vote.
  for (std::int64_t no : {std::int64_t{-1}, INT64_MIN, INT64_MAX}) two.told(id(2), no, 10s, 10s);
  for (int i = 0; i < 9; ++i) two.told(id(1), own_at(10s) + duration(1h).count(), 10s, 10s);
  CHECK(two.utc_ns(own_at(20s), 20s) == own_at(20s));
  // Most clocks are ahead, so they decide.
  two.told(id(2), own_at(10s) + duration(1h).count(), 10s, 10s);
  CHECK(two.utc_ns(own_at(20s), 20s) == own_at(20s) + duration(1h).count());
}

TEST_CASE("a member has one place in the routing table, whichever of its nodes speaks") {
  people p;
  const auto self = p.random_id();
  routing_table table(self, 3);
  auto of_member = [&](std::uint32_t incarnation, const caf::actor& address) {
    return contact{{5, 6, incarnation}, address};
  };
  CHECK(table.seen(of_member(1, p.somebody), 0s) == routing_table::arrival::added);
  for (std::uint32_t i = 2; i < 30; ++i)
    CHECK(table.seen(of_member(i, p.somebody), 0s) == routing_table::arrival::added);
  CHECK(table.size() == 1);
  CHECK(table.nearest({}, 20).size() == 1);
  CHECK(table.nearest({}, 20)[0].id.low == 29);
  // The member speaks from another actor. Nobody can keep it out by an earlier address.
  // That is no arrival: it would bring the member all records again, for each of its actors.
  CHECK(table.seen(of_member(29, p.another), 1s) == routing_table::arrival::known);
  CHECK(table.of_member({5, 6})->address == p.another);
  CHECK(table.seen(of_member(29, p.another), 1s) == routing_table::arrival::known);
  CHECK(table.size() == 1);
  // In a full bucket a member also waits once.
  while (table.size() < 3)
    table.seen(p.at(random_at(self, common_prefix(self, {5, 6, 0}), p.draws)), 2s);
  const auto waiting = random_at(self, common_prefix(self, {5, 6, 0}), p.draws);
  for (std::uint32_t i = 0; i < 9; ++i)
    CHECK(table.seen(p.at({waiting.high, waiting.middle, i}), 3s) == routing_table::arrival::waits);
  table.remove({5, 6, 29});
  CHECK(table.of_member(waiting.member())->id.low == 8);
  table.remove({waiting.high, waiting.middle, 8});
  CHECK_FALSE(table.of_member(waiting.member()));
}

TEST_CASE("a store keeps one owner from filling it, and says which limit is reached") {
  two_owners p;
  record_limits limits;
  limits.max_keys_per_owner = 2;
  limits.max_records_per_owner = 4;
  limits.max_records_per_owner_and_key = 3;
  limits.max_bytes_per_owner = 30;
  record_store store(limits);
  const auto put = [&](const host& who, const std::string& key, const std::string& subkey,
                       std::size_t bytes = 1, std::uint64_t version = 1) -> std::string {
    const record entry{subkey, nullptr, payload{std::vector<std::byte>(bytes)}, 100};
    const auto kept = store.put(key, sign_record(who, key, entry, version, false), 0);
    return kept.ok() ? (*kept ? "" : "old") : kept.error();
  };
  for (const char* subkey : {"a", "b", "c"}) CHECK(put(p.mine, "k", subkey).empty());
  CHECK(put(p.mine, "k", "d") == "too many records of one owner under one key");
  CHECK(put(p.mine, "l", "a").empty());
  CHECK(put(p.mine, "l", "b") == "too many records of one owner");
  store.drop_key("l");
  CHECK(put(p.mine, "l", "a").empty());
  store.drop_key("k");
  CHECK(put(p.mine, "m", "a").empty());
  CHECK(put(p.mine, "n", "a") == "too many keys of one owner");
  CHECK(put(p.mine, "m", "b", 30) == "too many bytes of one owner");
  // A new version of a record is not free either.
  CHECK(put(p.mine, "m", "a", 26, 2) == "too many bytes of one owner");
  CHECK(put(p.mine, "m", "a", 25, 2).empty());
  CHECK(put(p.mine, "m", "a", 1, 3).empty());
  CHECK(put(p.mine, "m", "b", 20).empty());
  // None of this is another owner's matter.
  for (const char* subkey : {"a", "b", "c"}) CHECK(put(p.other, "k", subkey).empty());
  CHECK(put(p.other, "n", "a").empty());
  // Room comes back when records expire.
  store.drop_expired(100);
  CHECK(store.size() == 0);
  CHECK_FALSE(store.has_records_of(p.mine.key()));
  for (const char* subkey : {"a", "b", "c"}) CHECK(put(p.mine, "k", subkey).empty());
}

TEST_CASE("under 'progress' an owner has one record, the last that it made") {
  two_owners p;
  record_store store;
  const auto put = [&](const host& who, const char* subkey, std::uint64_t version) {
    return *store.put("progress", signed_by(who, "progress", subkey, 'p', 100, version), 0);
  };
  const auto subkeys = [&] {
    std::string out;
    store.for_each("progress", [&](const shared<signed_record>& r) { out += r->entry.subkey; });
    return out;
  };
  CHECK(put(p.mine, "a", 1));
  CHECK(put(p.other, "a", 1));
  CHECK(put(p.mine, "b", 2));
  CHECK_FALSE(put(p.mine, "a", 1));
  CHECK(subkeys() == "ab");
  for (std::uint64_t i = 3; i < 40; ++i)
    CHECK(put(p.mine, std::string(1, static_cast<char>('a' + i % 20)).c_str(), i));
  CHECK(store.size() == 2);
  CHECK(store.find("progress", "a", p.other.key()) != nullptr);
  store.drop_expired(100);
  CHECK(store.size() == 0);
}

TEST_CASE("a record that would live longer than its kind of key allows is not kept") {
  two_owners p;
  record_store store;
  const auto keeps = [&](const char* key, duration life) {
    return *store.put(key, signed_by(p.mine, key, "s", 'v', life.count(), 1), 0);
  };
  CHECK_FALSE(keeps("progress", 10min + 1ns));
  CHECK(keeps("progress", 10min));
  CHECK_FALSE(keeps("round.3.abc", 1h + 1ns));
  CHECK(keeps("round.3.abc", 1h));
  CHECK_FALSE(keeps("data.shard", 1h + 1ns));
  CHECK(keeps("data.shard", 1h));
  CHECK(keeps("progress of something", 24h));
  CHECK_FALSE(keeps("k", 24h + 1ns));
  CHECK(keeps("k", 24h));
}

TEST_CASE("fifteen nodes of one member are one vote on the time") {
  constexpr std::int64_t utc = 1'700'000'000'000'000'000;
  clock_votes votes;
  for (std::uint64_t i = 1; i <= 3; ++i) votes.told({0, i}, utc, 0s, 0s);
  for (std::uint32_t i = 0; i < 15; ++i)
    votes.told(node_id{7, 7, i}.member(), utc + duration(1h).count(), 0s, 0s);
  CHECK(votes.utc_ns(utc, 0s) == utc);
}

namespace {

/// A look-up of target 0 among 200 honest nodes that know each other. The reader knows the farthest
/// ten and a liar, whose answers the test makes up.
struct lied_to {
  people p;
  std::vector<contact> honest, liars;
  std::size_t asked = 0;

  lied_to() {
    for (std::uint64_t i = 1; i <= 200; ++i) honest.push_back(p.at({0, i << 32, 0}));
  }
  std::vector<contact> run(std::size_t paths, const std::function<std::vector<contact>()>& lie) {
    iterative_lookup search({}, 5, 3, false, paths);
    std::vector<contact> known{liars.front()};
    known.insert(known.end(), honest.end() - 10, honest.end());
    search.start(known);
    std::vector<contact> open;
    while (!search.done()) {
      while (auto next = search.next()) {
        if (has(liars, *next)) {
          search.heard(*next, lie());
          search.answered(*next);
        } else if (const auto at = find(honest, *next); at != honest.end()) {
          search.heard(*next, {at - std::min<std::ptrdiff_t>(20, at - honest.begin()), at});
          search.answered(*next);
        } else {
          open.push_back(*next); // a node that does not exist
        }
      }
      if (open.empty()) break;
      search.failed(open.front());
      open.erase(open.begin());
    }
    CHECK(search.done());
    asked = search.asked();
    return search.nearest(5);
  }
  static std::vector<contact>::const_iterator find(const std::vector<contact>& in,
                                                   const contact& who) {
    return std::find_if(in.begin(), in.end(),
                        [&](const contact& c) { return c.where() == who.where(); });
  }
  static bool has(const std::vector<contact>& in, const contact& who) {
    return find(in, who) != in.end();
  }
};

} // namespace

TEST_CASE(
    "four liars that name each other and made-up nodes do not hide the honest nodes of a key") {
  for (std::size_t paths : {1u, 2u}) {
    lied_to net;
    for (std::uint64_t i = 1; i <= 4; ++i) net.liars.push_back(net.p.at({0, i, 0}));
    std::uint64_t made_up = 100, named = 0;
    const auto found = net.run(paths, [&] {
      std::vector<contact> out;
      if (++named < 4) out.push_back(net.liars[named]);
      while (out.size() < 32) out.push_back(net.p.at({0, made_up++, 0}));
      return out;
    });
    // With one path, the look-up ends among the liars' nodes. The second path is why there are two.
    CHECK(lied_to::has(found, net.honest.front()) == (paths == 2));
  }
}

TEST_CASE("a liar that names many nodes of one member hides neither that member nor others") {
  lied_to net;
  net.liars.push_back(net.p.at({0, (std::uint64_t{150} << 32) + 1, 0}));
  (void)net.run(2, [] { return std::vector<contact>{}; });
  const auto without_lies = net.asked;
  std::uint32_t incarnation = 1;
  const auto found = net.run(2, [&] {
    std::vector<contact> out;
    while (out.size() < 32) out.push_back(net.p.at({0, std::uint64_t{1} << 32, incarnation++}));
    return out;
  });
  REQUIRE(found.size() == 5);
  for (std::size_t i = 0; i < 5; ++i) CHECK(found[i].id == net.honest[i].id);
  CHECK(net.asked <= without_lies + iterative_lookup::most_of_member + 3);
}
