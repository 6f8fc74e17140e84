#include "netem/wire/relays.hpp"

#include <doctest/doctest.h>

using namespace shoal::netem::wire;

namespace {

node_key node(std::uint32_t number) {
  node_key out;
  out.incarnation = number;
  return out;
}

} // namespace

TEST_CASE("a relay passes on as many bytes as its budget allows") {
  relays none(0), some(100);
  CHECK_FALSE(none.offered());
  CHECK_FALSE(none.has_budget());
  CHECK(some.offered());
  CHECK(some.fits(100));
  CHECK_FALSE(some.fits(101));
  some.passed(node(1), node(2), 7, 99);
  CHECK(some.has_budget());
  CHECK_FALSE(some.fits(2));
  some.passed(node(2), node(1), 7, 1);
  CHECK_FALSE(some.has_budget());
}

TEST_CASE("the other end of each link hears when a host is gone for each direction that was used") {
  relays all(1000);
  all.passed(node(1), node(2), 7, 1);
  all.passed(node(1), node(2), 7, 1);
  all.passed(node(3), node(1), 8, 1);
  all.passed(node(2), node(3), 9, 1);
  const auto told = all.lost(node(1));
  REQUIRE(told.size() == 2);
  CHECK(told[0].host == node(2));
  CHECK(told[0].link == 7);
  CHECK(told[1].host == node(3));
  CHECK(told[1].link == 8);
  CHECK(all.lost(node(1)).empty());
  CHECK(all.lost(node(2)).size() == 1);
}

TEST_CASE("a host that invents links makes a relay remember a bounded number of them") {
  relays all(1'000'000'000);
  for (std::uint64_t link = 0; link < 100'000; ++link) {
    const bool passes = all.passed(node(1), node(2), link, 1);
    if (passes != (link < most_links_relayed)) FAIL("link ", link);
  }
  CHECK(all.size() == most_links_relayed);
  CHECK(all.passed(node(1), node(2), 7, 1)); // a link that there is
  CHECK(all.passed(node(2), node(1), 7, 1)); // another host
  // A link that has ended makes room for another one.
  all.ended(node(2), node(1), 7);
  CHECK(all.passed(node(1), node(3), 100'000, 1));
  CHECK_FALSE(all.passed(node(1), node(3), 100'001, 1));
  CHECK(all.lost(node(1)).size() == most_links_relayed);
  CHECK(all.size() == 0);
  CHECK(all.passed(node(1), node(3), 100'001, 1));
}

TEST_CASE("a link that has ended is forgotten in both directions whichever side ended it") {
  relays all(1000);
  all.passed(node(1), node(2), 7, 1);
  all.passed(node(2), node(1), 7, 1);
  all.passed(node(1), node(2), 8, 1);
  all.ended(node(2), node(1), 7);
  const auto told = all.lost(node(2));
  REQUIRE(told.size() == 1);
  CHECK(told[0].link == 8);
}
