#include "netem/wire/conduct.hpp"

#include <doctest/doctest.h>

using namespace shoal;
using namespace shoal::netem::wire;
using namespace std::chrono_literals;

TEST_CASE("a ban holds until its end and for its name only") {
  conduct all;
  all.ban("mallory", 60s);
  CHECK(all.is_banned("mallory", 59s));
  CHECK_FALSE(all.is_banned("mallory", 60s));
  CHECK_FALSE(all.is_banned("honest", 1s));
  all.expire(59s);
  CHECK(all.is_banned("mallory", 59s));
  all.expire(60s);
  CHECK_FALSE(all.is_banned("mallory", 59s));
}

TEST_CASE("unknown hosts are counted for the name that named them") {
  conduct all;
  CHECK_FALSE(all.names_too_many("a", 60, 100));
  CHECK_FALSE(all.names_too_many("a", 40, 100));
  CHECK(all.names_too_many("a", 1, 100));
  CHECK_FALSE(all.names_too_many("b", 100, 100));
}
