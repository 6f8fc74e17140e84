#include "actors/dht/directory.hpp"
#include "tests/actors/support/mini_world.hpp"

#include <doctest/doctest.h>

using namespace shoal;
using namespace shoal::actors;
using namespace shoal::actors::testing;
using namespace std::chrono_literals;

namespace {

struct fixture {
  mini_world world;
  mini_host& here = world.add_host("directory");
  caf::actor directory;
  std::shared_ptr<collector<found>::log> log = std::make_shared<collector<found>::log>();
  caf::actor asker;

  explicit fixture(directory_config settings = {}) {
    directory = world.spawn<actors::directory>(here, settings);
    asker = world.spawn<collector<found>>(world.add_host("asker"), log);
    world.settle();
  }
  std::int64_t utc(duration from_now) { return here.utc_ns() + from_now.count(); }
  void put(std::string key, std::string subkey, char value, duration lifetime) {
    payload bytes{std::vector<std::byte>{static_cast<std::byte>(value)}};
    world.send(directory, store{std::move(key), {std::move(subkey), asker, bytes, utc(lifetime)}});
    world.settle();
  }
  /// Sub-keys and values, as 'a=1 b=2'.
  std::string get(const std::string& key) {
    std::get<0>(*log).clear();
    world.send(directory, lookup{key, asker, 7});
    world.settle();
    REQUIRE(std::get<0>(*log).size() == 1);
    const auto& answer = std::get<0>(*log)[0];
    CHECK(answer.key == key);
    CHECK(answer.token == 7);
    std::string out;
    for (const auto& r : answer.records) {
      CHECK(r.address == asker);
      out += (out.empty() ? "" : " ") + r.subkey + "=" + static_cast<char>(r.value.bytes()[0]);
    }
    return out;
  }
  std::size_t bad() { return world.observed<misbehaved>().size(); }
};

} // namespace

TEST_CASE("the directory returns what was stored, ascending by sub-key") {
  fixture f;
  CHECK(f.get("k") == "");
  f.put("k", "b", '2', 10s);
  f.put("k", "a", '1', 10s);
  f.put("other", "c", '3', 10s);
  CHECK(f.get("k") == "a=1 b=2");
  CHECK(f.get("other") == "c=3");
  f.world.send(f.directory, withdraw{"k", "a"});
  f.world.send(f.directory, withdraw{"k", "never stored"});
  CHECK(f.get("k") == "b=2");
  CHECK(f.bad() == 0);
}

TEST_CASE("the latest expiration wins, and expired records are gone") {
  fixture f;
  f.put("k", "a", '1', 10s);
  f.put("k", "a", '2', 5s);
  CHECK(f.get("k") == "a=1");
  f.put("k", "a", '3', 10s); // as late: the later arrival
  CHECK(f.get("k") == "a=3");
  f.put("k", "a", '4', 20s);
  f.put("k", "b", '5', 10s);
  f.world.run_for(10s - 1ns);
  CHECK(f.get("k") == "a=4 b=5");
  f.world.run_for(1ns);
  CHECK(f.get("k") == "a=4");
  f.world.run_for(10s);
  CHECK(f.get("k") == "");
  f.put("k", "a", '6', -1s); // expired on its way
  CHECK(f.get("k") == "");
  CHECK(f.bad() == 0);
}

TEST_CASE("records live by the directory's clock, even where it is wrong") {
  fixture f;
  f.put("k", "a", '1', 10s);
  f.here.skew = 20s;
  CHECK(f.get("k") == "");
}

TEST_CASE("the directory refuses what exceeds its limits, and goes on") {
  directory_config limits;
  limits.max_keys = 2;
  limits.max_records_per_key = 2;
  limits.max_records = 3;
  limits.max_key_bytes = 8;
  limits.max_value_bytes = 4;
  limits.max_lifetime = 1h;
  fixture f(limits);
  f.put("k", "a", '1', 10s);
  f.put("k", "b", '2', 10s);
  f.put("k", "c", '3', 10s);
  CHECK(f.bad() == 1);
  f.put("k", "b", '4', 20s); // replacing is no further record
  CHECK(f.bad() == 1);
  f.put("l", "a", '5', 10s);
  f.put("l", "b", '6', 10s); // a fourth record
  CHECK(f.bad() == 2);
  f.put("m", "a", '7', 10s); // a third key
  CHECK(f.bad() == 3);
  f.put("", "a", '8', 10s);
  f.put("much too long", "a", '8', 10s);
  f.put("k", "much too long", '8', 10s);
  CHECK(f.bad() == 6);
  f.put("k", "a", '9', 2h);
  CHECK(f.bad() == 7);
  f.world.send(f.directory, store{"k", {"a", f.asker, payload::hollow(5), f.utc(10s)}});
  f.world.send(f.directory, lookup{"k", nullptr, 1});
  f.world.send(f.directory, work_done{1}); // not for a directory
  f.world.settle();
  CHECK(f.bad() == 10);
  CHECK(f.get("k") == "a=1 b=4");
  CHECK(f.get("l") == "a=5");
  f.world.run_for(10s);
  f.put("m", "a", '7', 10s); // there is room again
  CHECK(f.get("m") == "a=7");
  f.world.send(f.directory,
               store{"k", {"a", f.asker, {}, std::numeric_limits<std::int64_t>::max()}});
  f.world.send(f.directory,
               store{"k", {"a", f.asker, {}, std::numeric_limits<std::int64_t>::min()}});
  f.world.settle();
  CHECK(f.bad() == 11);
}
