// The DHT's decisions without actors: ids, buckets, look-ups, records and their signatures.
#include "actors/dht/blacklist.hpp"
#include "actors/dht/clock_votes.hpp"
#include "actors/dht/iterative_lookup.hpp"
#include "actors/dht/record_store.hpp"
#include "actors/dht/routing_table.hpp"
#include "actors/dht/signed_record.hpp"
#include "tests/actors/support/mini_world.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

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

signed_record signed_by(const identity& who, const std::string& key, const std::string& subkey,
                        char value, std::int64_t expires, std::uint64_t version = 1,
                        bool withdrawn = false) {
  record entry;
  entry.subkey = subkey;
  entry.value = payload{std::vector<std::byte>{static_cast<std::byte>(value)}};
  entry.expires_utc_ns = expires;
  return who.sign(key, std::move(entry), version, withdrawn);
}

} // namespace

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
  CHECK(table.seen({ids[0], p.another}, 6s) == routing_table::arrival::refused);
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
  auto found = table.nearest(target, 20, [&](const node_id& id) { return id == ids[0]; });
  REQUIRE(found.size() == 20);
  for (std::size_t i = 0; i < 20; ++i) CHECK(found[i].id == ids[i + 1]);
}

TEST_CASE("the time for which a silent node is left alone doubles, and one answer ends it") {
  blacklist list(5s);
  node_id who{1, 2, 3};
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
  for (std::uint64_t i = 0; i < 10'000; ++i) list.failed({i, 0, 0}, 30s, 30s);
  CHECK(list.size() <= 4097);
}

TEST_CASE("a node that was silent for long is asked after a sixteenth of that time, and at least "
          "after about a minute") {
  blacklist list(1s);
  node_id who{1, 2, 3};
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
  double hops = 0;
  for (int i = 0; i < 100; ++i) {
    auto target = p.random_id();
    iterative_lookup search(target, 5, 3);
    search.start(tables[p.draws.below(nodes)].nearest(target, 20));
    while (!search.done()) {
      std::vector<contact> asked;
      while (auto next = search.next()) asked.push_back(*next);
      CHECK(asked.size() <= 3);
      REQUIRE_FALSE(asked.empty());
      for (auto& who : asked) {
        if (p.draws.below(10) == 0) {
          search.failed(who.id);
          continue;
        }
        search.heard(who.id, table_of(who.id).nearest(target, 20));
        search.answered(who.id);
      }
    }
    CHECK(search.nearest(5).size() == 5);
    CHECK(search.hops() <= 10);
    hops += search.hops();
    CHECK(search.asked() < 40);
  }
  CHECK(hops / 100 <= 10);
}

TEST_CASE("a look-up waits for slow nodes only if no other node is left") {
  people p;
  node_id target{0, 0, 0}, near{0, 0, 1}, far{0, 0, 8};
  iterative_lookup search(target, 1, 1);
  search.start({p.at(near), p.at(far)});
  CHECK(search.next()->id == near);
  CHECK_FALSE(search.next());
  search.slow(near);
  CHECK(search.next()->id == far);
  search.answered(far);
  CHECK(search.done());
  search.answered(near); // late, and nearer
  CHECK(search.nearest(1)[0].id == near);

  iterative_lookup alone(target, 1, 1);
  alone.start({p.at(near)});
  (void)alone.next();
  alone.slow(near);
  CHECK_FALSE(alone.done());
  alone.failed(near);
  CHECK(alone.done());
  CHECK(alone.nearest(1).empty());
  CHECK(alone.hops() == 0);

  // With one answer, the look-up ends without the slow node.
  iterative_lookup few(target, 5, 3);
  few.start({p.at(near), p.at(far)});
  (void)few.next();
  (void)few.next();
  few.slow(near);
  CHECK_FALSE(few.done());
  few.answered(far);
  CHECK(few.done());

  // A look-up for values waits for one of the nearest nodes. The others have none.
  iterative_lookup reads(target, 1, 1, true);
  reads.start({p.at(near), p.at(far)});
  (void)reads.next();
  reads.slow(near);
  (void)reads.next();
  reads.answered(far);
  CHECK_FALSE(reads.done());
  CHECK(reads.nearest(1)[0].id == far);
  CHECK(reads.nearest_living(1)[0].id == near);
  reads.failed(near);
  CHECK(reads.done());
  CHECK(reads.nearest_living(1)[0].id == far);

  iterative_lookup strangers(target, 1, 1);
  strangers.start({p.at(far)});
  // This node was not asked.
  strangers.heard(far, {p.at(near)});
  CHECK(strangers.next()->id == far);
}

TEST_CASE("a signature covers each field, the key and the owner") {
  people p;
  identity mine(stream(1, "mine")), other(stream(2, "other"));
  CHECK(mine.id() != other.id());
  auto good = signed_by(mine, "k", "s", 'a', 100, 7);
  good = mine.sign("k", {"s", p.somebody, good.entry.value, 100}, 7, false);
  signature_cache signatures;
  CHECK(is_genuine("k", good, nullptr));
  CHECK(is_genuine("k", good, &signatures));
  CHECK(is_genuine("k", good, &signatures));
  CHECK_FALSE(is_genuine("l", good, &signatures));
  auto bad = [&](auto change) {
    auto copy = good;
    change(copy);
    CHECK_FALSE(is_genuine("k", copy, &signatures));
  };
  bad([](signed_record& r) { r.entry.subkey = "t"; });
  bad([](signed_record& r) { r.entry.address = nullptr; });
  bad([&](signed_record& r) { r.entry.address = p.another; });
  bad([](signed_record& r) { r.entry.value = payload{std::vector<std::byte>(2)}; });
  bad([](signed_record& r) { r.entry.value = payload::size_only(1); });
  bad([](signed_record& r) { ++r.entry.expires_utc_ns; });
  bad([](signed_record& r) { ++r.version; });
  bad([](signed_record& r) { r.withdrawn = 1; });
  bad([&](signed_record& r) { r.owner = other.public_key(); });
  bad([](signed_record& r) { ++r.signature_r.a; });
  bad([](signed_record& r) { ++r.signature_s.d; });
}

TEST_CASE("a stand-in for a signature covers the same fields, and is valid for its owner only") {
  people p;
  identity mine(stream(1, "mine"));
  signature_cache stands_in(1, signature_cache::signing::stand_in), real;
  const record entry{"s", p.somebody, payload{std::vector<std::byte>(1)}, 100};
  const auto good = mine.sign("k", entry, 7, false, &stands_in);
  CHECK(is_genuine("k", good, &stands_in));
  for (std::uint64_t version = 8; version < 12; ++version)
    (void)mine.sign("k", entry, version, false, &stands_in);
  // The record was forgotten, so its signature is checked again.
  CHECK_FALSE(stands_in.knows("k", good));
  CHECK(is_genuine("k", good, &stands_in));
  auto bad = good;
  ++bad.version;
  CHECK_FALSE(is_genuine("k", bad, &stands_in));
  CHECK_FALSE(is_genuine("l", good, &stands_in));
  CHECK_FALSE(is_genuine("k", good, &real));
  CHECK_FALSE(is_genuine("k", mine.sign("k", entry, 7, false), &stands_in));
}

TEST_CASE("the latest version wins, then the expiration, then the withdrawal, and a live record "
          "has one owner") {
  identity mine(stream(1, "mine")), other(stream(2, "other"));
  record_store store;
  CHECK(*store.put("k", signed_by(mine, "k", "s", 'a', 100, 1), 0));
  CHECK(*store.put("k", signed_by(mine, "k", "s", 'b', 50, 2), 0));
  CHECK_FALSE(*store.put("k", signed_by(mine, "k", "s", 'a', 100, 1), 0));
  CHECK_FALSE(*store.put("k", signed_by(mine, "k", "s", 'b', 50, 2), 0));
  CHECK(*store.put("k", signed_by(mine, "k", "s", 'c', 100, 2), 0));
  CHECK_FALSE(store.put("k", signed_by(other, "k", "s", 'x', 200, 3), 0).ok());
  CHECK(static_cast<char>(store.find("k", "s")->entry.value.bytes()[0]) == 'c');
  CHECK(*store.put("k", signed_by(mine, "k", "s", 'c', 100, 2, true), 0));
  CHECK(store.find("k", "s")->withdrawn == 1);
  // Once the record has expired, its sub-key is free, even before it is dropped.
  CHECK(*store.put("k", signed_by(other, "k", "s", 'x', 200, 3), 100));
  store.drop_expired(200);
  CHECK(store.size() == 0);
  CHECK_FALSE(store.has_key("k"));
  CHECK_FALSE(*store.put("k", signed_by(mine, "k", "s", 'a', 100, 1), 100)); // expired on its way
}

TEST_CASE("a reader gets the changes since its last question, in pieces") {
  identity mine(stream(1, "mine"));
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
  CHECK(store.after("nothing", 5, 100).sequence == 0);
}

TEST_CASE("a store refuses records beyond its limits, and has room again when records expire") {
  identity mine(stream(1, "mine"));
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
  const auto id = [](std::uint32_t n) { return node_id{0, 0, n}; };
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
  // An impossible time is no vote, and each node has one vote.
  for (std::int64_t no : {std::int64_t{-1}, INT64_MIN, INT64_MAX}) two.told(id(2), no, 10s, 10s);
  for (int i = 0; i < 9; ++i) two.told(id(1), own_at(10s) + duration(1h).count(), 10s, 10s);
  CHECK(two.utc_ns(own_at(20s), 20s) == own_at(20s));
  // Most clocks are ahead, so they decide.
  two.told(id(2), own_at(10s) + duration(1h).count(), 10s, 10s);
  CHECK(two.utc_ns(own_at(20s), 20s) == own_at(20s) + duration(1h).count());
}
