// Averaging strategies: the registry, and what each definition promises about its groups.
#include "actors/averaging/averaging_strategy.hpp"
#include "tests/support/aborts.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string_view>

using namespace shoal;
using namespace shoal::actors;

namespace {

averaging_swarm swarm_of(std::size_t peers) {
  averaging_swarm out;
  out.peers = peers;
  out.grid = kernels::square_grid(peers);
  out.group_size = 4;
  return out;
}

} // namespace

TEST_CASE("averaging strategies are found by name, and moshpit is the default") {
  const auto& all = averaging_strategies();
  CHECK(std::string_view{all.names()} ==
        "moshpit, random-groups, all-reduce, parameter-server, gossip, push-sum");
  CHECK(all.all().front().name == "moshpit");
  CHECK(all.find("gossip")->name == "gossip");
  CHECK(all.find("gosip") == nullptr);
}

TEST_CASE("a second averaging strategy of the same name is refused") {
  CHECK(shoal::testing::aborts(
      [] { averaging_strategies().add(*averaging_strategies().find("gossip")); }));
  CHECK_FALSE(shoal::testing::aborts([] {
    auto other = *averaging_strategies().find("gossip");
    other.name = "other-gossip";
    averaging_strategies().add(other);
  }));
}

TEST_CASE("a plan has a group for each peer, and none larger than its strategy says") {
  for (const auto& strategy : averaging_strategies().all()) {
    CAPTURE(strategy.name);
    CHECK(strategy.spawn != nullptr);
    CHECK_FALSE(strategy.meaning.empty());
    CHECK(strategy.by_groups() == (strategy.largest_group != nullptr));
    if (!strategy.by_groups()) continue;
    for (const std::size_t peers : {2u, 9u, 24u, 100u}) {
      const auto swarm = swarm_of(peers);
      const auto plan = strategy.plan(swarm, 0), again = strategy.plan(swarm, 0);
      for (unsigned t = 1; t <= 5; ++t) {
        const auto groups = plan(t);
        REQUIRE(groups.size() == peers);
        CHECK(groups == again(t));
        for (const auto group : groups)
          CHECK(
              std::count(groups.begin(), groups.end(), group) <=
              static_cast<std::ptrdiff_t>(std::max<std::size_t>(strategy.largest_group(swarm), 1)));
      }
    }
  }
}

TEST_CASE("theory begins with the whole distortion, and never expects it to grow") {
  for (const auto& strategy : averaging_strategies().all()) {
    if (!strategy.theory) continue;
    CAPTURE(strategy.name);
    double last = 1;
    for (std::uint64_t t = 0; t < 6; ++t) {
      const auto expected = strategy.theory(swarm_of(16), t, 16 * static_cast<double>(t));
      REQUIRE(expected);
      if (t == 0) CHECK(*expected == 1);
      CHECK(*expected <= last);
      last = *expected;
    }
  }
}
