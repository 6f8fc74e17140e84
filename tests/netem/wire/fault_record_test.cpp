#include "netem/wire/fault_record.hpp"

#include <doctest/doctest.h>

using namespace shoal;
using namespace shoal::netem::wire;
using namespace std::chrono_literals;

TEST_CASE("a ban holds until its end and for its host only") {
  fault_record all;
  all.ban("mallory", 0s, 60s);
  CHECK(all.is_banned("mallory", 59s));
  CHECK_FALSE(all.is_banned("mallory", 60s));
  CHECK_FALSE(all.is_banned("honest", 1s));
  all.expire(59s);
  CHECK(all.is_banned("mallory", 59s));
}

TEST_CASE("each further ban of a host is twice as long, up to an hour") {
  fault_record all;
  duration now = 0s;
  for (const duration length : {1min, 2min, 4min, 8min, 16min, 32min, 60min, 60min}) {
    all.ban("mallory", now, 1min);
    CHECK(all.is_banned("mallory", now + length - 1s));
    CHECK_FALSE(all.is_banned("mallory", now + length));
    now += length;
    all.expire(now);
  }
  // An hour without a fault after the end of the ban, and the host begins anew.
  now += 1h;
  all.expire(now);
  CHECK(all.size() == 0);
  all.ban("mallory", now, 1min);
  CHECK_FALSE(all.is_banned("mallory", now + 1min));
}

TEST_CASE("unknown hosts are counted for the host that named them") {
  fault_record all;
  CHECK_FALSE(all.names_too_many("a", 60, 100, 0s));
  CHECK_FALSE(all.names_too_many("a", 40, 100, 0s));
  CHECK(all.names_too_many("a", 1, 100, 0s));
  CHECK_FALSE(all.names_too_many("b", 100, 100, 0s));
  // Half of the allowance is back after half an hour.
  CHECK_FALSE(all.names_too_many("a", 50, 100, 30min));
  CHECK(all.names_too_many("a", 1, 100, 30min));
  CHECK(all.size() == 2);
  all.expire(30min + 1h);
  CHECK(all.size() == 0);
}

TEST_CASE("a replica that names 500 volunteers with 6 incarnations a day for 30 days is never cut "
          "off") {
  fault_record all;
  constexpr std::size_t most = 16'384;
  std::size_t named = 0;
  for (int day = 0; day < 30; ++day)
    for (int session = 0; session < 6; ++session) {
      // The worst case: all 500 come back at the same time.
      const auto now = day * duration(24h) + session * duration(4h);
      REQUIRE_FALSE(all.names_too_many("replica", 500, most, now));
      all.expire(now);
      named += 500;
    }
  CHECK(named > 5 * most);
}
