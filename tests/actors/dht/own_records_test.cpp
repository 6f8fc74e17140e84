#include "actors/dht/merge_records.hpp"
#include "actors/dht/own_records.hpp"
#include "actors/dht/read_cache.hpp"
#include "tests/actors/support/mini_world.hpp"

#include <doctest/doctest.h>

using namespace shoal;
using namespace shoal::actors;
using namespace shoal::actors::testing;
using namespace std::chrono_literals;

namespace {

using keys = std::vector<std::string>;

constexpr std::int64_t second = 1'000'000'000;
const node_id one{0, 0, 1}, two{0, 0, 2};

record entry(std::string subkey, std::int64_t until_s, char value = 'v') {
  return {std::move(subkey), nullptr,
          payload{std::vector<std::byte>{static_cast<std::byte>(value)}}, until_s * second};
}

std::string names(const std::vector<shared<signed_record>>& records) {
  std::string out;
  for (const auto& each : records) out += each->entry.subkey;
  return out;
}

/// "a=1 b=2"
std::string text(const std::vector<shared<record>>& records) {
  std::string out;
  for (const auto& each : records)
    out +=
        (out.empty() ? "" : " ") + each->subkey + "=" + static_cast<char>(each->value.bytes()[0]);
  return out;
}

struct fixture {
  mini_world world;
  mini_host &me = world.add_host("me"), &other = world.add_host("other");
  own_records own{me, 3600s, nullptr};
};

} // namespace

TEST_CASE("DHT own records: a pending record is sent to each replica once") {
  fixture f;
  CHECK_FALSE(f.own.has_pending("k"));
  CHECK_FALSE(f.own.mark_pending("k"));
  f.own.publish("k", entry("a", 60), false, 0);
  f.own.publish("k", entry("b", 60), false, 0);
  CHECK(f.own.has("k"));
  CHECK(f.own.has_pending("k"));
  CHECK(names(f.own.take_unsent("k", one, 0)) == "ab");
  CHECK(f.own.take_unsent("k", one, 0).empty());
  CHECK(names(f.own.take_unsent("k", two, 0)) == "ab");
  f.own.written("k", 0s);
  CHECK_FALSE(f.own.has_pending("k"));
  f.own.publish("k", entry("b", 70), false, 0);
  CHECK(names(f.own.take_unsent("k", one, 0)) == "b");
  CHECK(f.own.mark_pending("k"));
  CHECK(names(f.own.take_unsent("k", one, 0)) == "a");
  // The other record has expired.
  CHECK(f.own.take_unsent("k", two, 60 * second).size() == 1);
}

TEST_CASE("DHT own records: versions ascend, even if the clock does not") {
  fixture f;
  const auto version = [&] { return f.own.living("k", 0, 1).at(0)->version; };
  f.own.publish("k", entry("a", 60), false, 100);
  CHECK(version() == 100);
  f.own.publish("k", entry("a", 60), false, 50);
  CHECK(version() == 101);
  CHECK(not_genuine(f.other, "k", *f.own.living("k", 0, 1).at(0), nullptr).empty());
}

TEST_CASE("DHT own records: a withdrawal lasts as long as any older version") {
  fixture f;
  CHECK(f.own.withdrawal_until("k", "a", 0) == 0);
  f.own.publish("k", entry("a", 60), false, 0);
  f.own.publish("k", entry("a", 30), false, 0);
  CHECK(f.own.withdrawal_until("k", "b", 0) == 0);
  CHECK(f.own.withdrawal_until("k", "a", 0) == 60 * second);
  CHECK(f.own.withdrawal_until("k", "a", 60 * second) == 0);
  f.own.publish("k", {"a", nullptr, {}, 60 * second}, true, 0);
  // The record is withdrawn already.
  CHECK(f.own.withdrawal_until("k", "a", 0) == 0);
}

TEST_CASE("DHT own records: a record that ends before an older version is withdrawn at its end") {
  fixture f;
  f.own.publish("k", entry("a", 1000'000), false, 0); // from a clock that is far ahead
  f.own.publish("k", entry("a", 30), false, 0);
  f.own.publish("k", entry("b", 30), false, 0);
  CHECK(f.own.outlived(29 * second).empty());
  const auto rests = f.own.outlived(30 * second);
  REQUIRE(rests.size() == 1);
  CHECK(rests[0].first == "k");
  CHECK(rests[0].second.subkey == "a");
  // A replica keeps a record no longer than this.
  CHECK(rests[0].second.expires_utc_ns == 3600 * second);
  f.own.publish("k", rests[0].second, true, 30 * second);
  f.own.drop_expired(30 * second);
  CHECK(names(f.own.living("k", 0, 10)) == "a");
  f.own.drop_expired(3600 * second);
  CHECK_FALSE(f.own.has("k"));
}

TEST_CASE("DHT own records: a record is renewed when its last write is old") {
  fixture f;
  f.own.publish("k", entry("a", 60), false, 0);
  f.own.publish("k", entry("b", 60), false, 0);
  f.own.publish("l", entry("a", 60), false, 0);
  f.own.written("k", 10s);
  f.own.written("l", 20s);
  CHECK(f.own.renew(29s, 20s).empty());
  CHECK(f.own.renew(30s, 20s) == keys{"k", "k"});
  CHECK(f.own.has_pending("k"));
  CHECK_FALSE(f.own.has_pending("l"));
  CHECK(f.own.keys() == keys{"k", "l"});
}

TEST_CASE("DHT reads: a reader gets the newest version of each sub-key, in order, without "
          "withdrawn or expired ones") {
  fixture f;
  record_store kept, read;
  const auto put = [&](record_store& in, const host& by, record what, std::uint64_t version,
                       bool withdrawn = false) {
    CHECK(in.put("k", sign_record(by, "k", std::move(what), version, withdrawn), 0));
  };
  put(kept, f.other, entry("c", 60, '1'), 1);
  put(kept, f.other, entry("e", 10, '1'), 1);
  put(kept, f.me, entry("b", 60, '1'), 1);
  put(read, f.other, entry("c", 60, '2'), 2);
  put(read, f.other, entry("a", 60, '1'), 1);
  f.own.publish("k", entry("b", 60, '2'), false, 100);
  f.own.publish("k", entry("d", 60, '1'), false, 100);
  const auto all = [&](std::int64_t utc, bool expired_too = false) {
    return text(merge_records("k", kept, read, f.own, utc, expired_too));
  };
  CHECK(all(0) == "a=1 b=2 c=2 d=1 e=1");
  CHECK(all(10 * second) == "a=1 b=2 c=2 d=1");
  CHECK(all(60 * second) == "");
  CHECK(all(60 * second, true) == "a=1 b=2 c=2 d=1 e=1");
  put(read, f.other, {"c", nullptr, {}, 60 * second}, 3, true);
  f.own.publish("k", {"d", nullptr, {}, 60 * second}, true, 100);
  CHECK(all(0) == "a=1 b=2 e=1");
  CHECK(merge_records("unknown", kept, read, f.own, 0, false).empty());
}

TEST_CASE("DHT reads: each replica is read from its last position") {
  read_cache cache{record_limits{}};
  CHECK(cache.position("k", one) == 0);
  CHECK(cache.advance("k", one, 5));
  CHECK_FALSE(cache.advance("k", one, 5));
  CHECK_FALSE(cache.advance("k", one, 4));
  CHECK(cache.advance("k", two, 7));
  CHECK(cache.position("k", one) == 5);
  cache.keep_positions("k", {{two, {}}});
  CHECK(cache.position("k", one) == 0);
  CHECK(cache.position("k", two) == 7);
}

TEST_CASE("DHT reads: a fresh key is not fetched again, and an unused key is forgotten") {
  read_cache cache{record_limits{}};
  CHECK_FALSE(cache.read("k", 0s, 50ms));
  cache.fetched("k", 0s);
  CHECK(cache.read("k", 49ms, 50ms));
  CHECK_FALSE(cache.read("k", 50ms, 50ms));
  cache.drop_idle(120s, 60s, [](const std::string& key) { return key == "k"; });
  CHECK(cache.has("k"));
  cache.drop_idle(120s, 60s, [](const std::string&) { return false; });
  CHECK_FALSE(cache.has("k"));
}

TEST_CASE("DHT reads: with too many keys, the least recently used one is forgotten") {
  read_cache cache{record_limits{}};
  for (std::size_t i = 0; i < read_cache::most_keys; ++i)
    cache.read(std::to_string(i), std::chrono::seconds(i + 1), 0s);
  cache.used("0", 1h);
  cache.read("new", 2h, 0s);
  CHECK(cache.has("0"));
  CHECK(cache.has("new"));
  CHECK_FALSE(cache.has("1"));
}

TEST_CASE(
    "DHT reads: each owner's record under a sub-key is given, and under 'progress' the last of "
    "each owner") {
  fixture f;
  record_store kept, read;
  const auto put = [&](record_store& in, const std::string& key, const host& by, record what,
                       std::uint64_t version) {
    CHECK(in.put(key, sign_record(by, key, std::move(what), version, false), 0));
  };
  for (const std::string key : {"k", "progress"}) {
    put(kept, key, f.other, entry("a", 60, '1'), 1);
    put(read, key, f.other, entry("b", 60, '2'), 2);
    put(kept, key, f.me, entry("c", 60, '1'), 1);
    f.own.publish(key, entry("a", 60, '3'), false, 100);
  }
  const auto all = [&](const std::string& key) {
    return merge_records(key, kept, read, f.own, 0, false);
  };
  REQUIRE(all("k").size() == 4);
  std::size_t of_me = 0;
  for (const auto& each : all("k")) of_me += each->owner == f.me.key() ? 1 : 0;
  CHECK(of_me == 2);
  // Each has restarted. One source still has the record of the earlier incarnation.
  CHECK(text(all("progress")) == "a=3 b=2");
}
