#include "actors/inference/server_record.hpp"
#include "actors/inference/session_table.hpp"
#include "kernels/base/rng.hpp"

#include <doctest/doctest.h>

#include <map>

using namespace shoal;
using namespace shoal::actors;
using namespace std::chrono_literals;

namespace {

session_table::session of_size(layer_span layers, std::size_t samples, std::size_t most) {
  session_table::session out{layers, samples, most};
  return out;
}

} // namespace

TEST_CASE("a session reserves its largest size when it opens and frees it when it closes") {
  session_limits limits;
  limits.cache = 100;
  limits.cache_of_one = 100;
  session_table table(limits);
  CHECK(table.may_open({1, 1}, {0, 2}, 1, 30) == refusal::none);
  table.open({1, 1}, of_size({0, 2}, 1, 30), 0s);
  CHECK(table.left() == 40);
  CHECK(table.may_open({2, 1}, {0, 2}, 1, 21) == refusal::no_cache);
  CHECK(table.may_open({2, 1}, {0, 2}, 1, 20) == refusal::none);
  CHECK(table.may_open({1, 1}, {0, 2}, 1, 1) == refusal::too_many);
  table.close({1, 1});
  table.close({1, 1});
  CHECK(table.left() == 100);
  CHECK(table.find({1, 1}) == nullptr);
}

TEST_CASE("one client can take neither all sessions nor all of the cache") {
  session_limits limits;
  limits.cache = 100;
  limits.cache_of_one = 50;
  limits.sessions_of_one = 2;
  limits.sessions = 3;
  session_table table(limits);
  CHECK(table.may_open({1, 1}, {0, 1}, 1, 51) == refusal::no_cache);
  table.open({1, 1}, of_size({0, 1}, 1, 40), 0s);
  CHECK(table.may_open({1, 2}, {0, 1}, 1, 20) == refusal::no_cache);
  table.open({1, 2}, of_size({0, 1}, 1, 5), 0s);
  CHECK(table.may_open({1, 3}, {0, 1}, 1, 1) == refusal::too_many);
  CHECK(table.may_open({2, 1}, {0, 1}, 1, 50) == refusal::none);
  table.open({2, 1}, of_size({0, 1}, 1, 50), 0s);
  CHECK(table.may_open({3, 1}, {0, 1}, 1, 1) == refusal::too_many);
  table.close({1, 1});
  table.close({1, 2});
  CHECK(table.left() == 50);
}

TEST_CASE("idle sessions end and sessions that are computed do not") {
  session_limits limits;
  limits.idle = 10s;
  session_table table(limits);
  table.open({1, 1}, of_size({0, 1}, 1, 1), 0s).busy = true;
  table.open({1, 2}, of_size({0, 1}, 1, 1), 0s);
  table.open({1, 3}, of_size({0, 1}, 1, 1), 5s);
  CHECK(table.expire(10s) == 1);
  CHECK(table.find({1, 2}) == nullptr);
  CHECK(table.size() == 2);
}

TEST_CASE("sizes that no session can have are refused") {
  session_table table({});
  CHECK(table.may_open({1, 1}, {0, 1}, 0, 1) == refusal::wrong_position);
  CHECK(table.may_open({1, 1}, {0, 1}, 1, 0) == refusal::wrong_position);
  CHECK(table.may_open({1, 1}, {0, 4096}, 1 << 16, 1 << 24) == refusal::no_cache);
}

TEST_CASE("the quota is exact after a hundred thousand random openings and closings") {
  session_limits limits;
  limits.cache = 1000;
  limits.cache_of_one = 400;
  limits.sessions_of_one = 5;
  session_table table(limits);
  std::map<session_table::key, std::uint64_t> open;
  auto random = stream(3, "sessions");
  for (int i = 0; i < 100'000; ++i) {
    const session_table::key key{random.below(6), random.below(8)};
    const layer_span layers{0, 1 + static_cast<std::uint32_t>(random.below(3))};
    const std::size_t most = 1 + random.below(60);
    if (random.below(20) < 8) {
      table.close(key);
      open.erase(key);
    } else if (table.may_open(key, layers, 1, most) == refusal::none) {
      REQUIRE(!open.contains(key));
      open[key] = table.open(key, of_size(layers, 1, most), 0s).cost();
    }
    std::uint64_t used = 0;
    std::map<peer_id, std::uint64_t> by_client;
    for (const auto& [which, cost] : open) {
      used += cost;
      by_client[which.first] += cost;
    }
    REQUIRE(table.left() == limits.cache - used);
    for (const auto& [client, cost] : by_client) REQUIRE(cost <= limits.cache_of_one);
  }
}

TEST_CASE("the record of a server comes back and other bytes are refused") {
  const server_record out{{2, 5}, 1'000'000, 77, 0x1234, true};
  CHECK(server_record::unpack(out.pack()) == out);
  CHECK(!server_record::unpack({}));
  CHECK(!server_record::unpack(payload::size_only(48)));
  CHECK(!server_record::unpack(payload{std::vector<std::byte>(48)})); // no layer
  server_record wrong = out;
  wrong.layers = {5, 5};
  CHECK(!server_record::unpack(wrong.pack()));
}
