#include "actors/training/reach_agent.hpp"
#include "tests/actors/support/mini_world.hpp"

#include <caf/actor_cast.hpp>
#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace shoal;
using namespace shoal::actors;
using namespace shoal::actors::testing;
using namespace std::chrono_literals;

namespace {

/// A peer and some others with made-up records.
struct lab {
  using silent = collector<found>;
  mini_world world;
  mini_host& host = world.add_host("h");
  caf::actor self = actor();
  std::vector<caf::actor> peers;
  std::vector<shared<record>> records;
  progress_table others;

  caf::actor actor() { return actor_on(host); }
  caf::actor actor_on(mini_host& on) {
    return world.spawn<silent>(on, std::make_shared<silent::log>());
  }
  void add(reach how, bool unreachable = false) {
    progress what;
    what.reach = how;
    what.unreachable = unreachable ? 1 : 0;
    // An inquiry queries each member once.
    peers.push_back(actor_on(world.add_host(fmt::format("peer-{}", peers.size()))));
    records.push_back(
        record{fmt::format("{:016x}", 100 + peers.size()), peers.back(), what.pack(), 0});
    others.replace(records, 1, 0s);
  }
};

reach_agent agent(bool enabled = true) {
  reachability_config config;
  config.enabled = enabled;
  return {config, rng(1)};
}

} // namespace

TEST_CASE("reach agent: without reachability checks every peer is open and no inquiry begins") {
  lab t;
  t.add(reach::unknown);
  auto reach = agent(false);
  CHECK_FALSE(reach.due(1h));
  CHECK(reach.look(t.others, t.self, {}, 1h, t.host).empty());
  CHECK(reach.reached(false) == reached_by::all);
  CHECK(reach.to_greet(t.others, false).empty());
}

TEST_CASE("reach agent: the first inquiry waits a quarter of its timeout for more records") {
  lab t;
  auto reach = agent();
  CHECK(reach.look(t.others, t.self, {}, 0s, t.host).empty());
  t.add(reach::open);
  CHECK(reach.look(t.others, t.self, {}, 10s, t.host).empty());
  t.add(reach::open);
  CHECK(reach.look(t.others, t.self, {}, 10s + 999ms, t.host).empty());
  CHECK(reach.look(t.others, t.self, {}, 11s, t.host).size() == 2);
  CHECK(reach.looking(reach.token()));
  CHECK_FALSE(reach.looking(reach.token() + 1));
  CHECK_FALSE(reach.due(1h));
}

TEST_CASE("reach agent: with a relay all reach a cone and the relay reaches a symmetric peer, "
          "without one none does") {
  for (const bool one_address : {true, false}) {
    lab t;
    for (int i = 0; i < 5; ++i) t.add(reach::open);
    auto reach = agent();
    CHECK(reach.look(t.others, t.self, {}, 10s, t.host).empty());
    const auto queries = reach.look(t.others, t.self, {}, 11s, t.host);
    REQUIRE(queries.size() == 5);
    std::uint64_t seen = 7;
    bool complete = false;
    for (const auto& [to, query] : queries) {
      CHECK_FALSE(complete);
      const auto sender = caf::actor_cast<caf::strong_actor_ptr>(to);
      reach.on(address_answer{query.token, one_address ? seen : seen++}, sender);
      complete = reach.on(dial_answer{query.token, 0}, sender);
    }
    CHECK(complete);
    CHECK(reach.conclude(12s));
    CHECK(reach.known() == (one_address ? reach::cone : reach::symmetric));
    CHECK(reach.reached(true) == (one_address ? reached_by::all : reached_by::relay));
    CHECK(reach.reached(false) == reached_by::nobody);
  }
}

TEST_CASE("reach agent: an unreachable peer greets each reachable peer once, and again when that "
          "peer is back") {
  lab t;
  t.add(reach::open);
  t.add(reach::cone, true);    // cannot be reached
  t.add(reach::unknown, true); // does not know yet
  auto reach = agent();
  CHECK(reach.to_greet(t.others, false) == std::vector{t.peers[0], t.peers[2]});
  CHECK(reach.to_greet(t.others, false).empty());
  CHECK(reach.to_greet(t.others, true).empty()); // a relay forwards messages to this peer
  const auto first = t.records.front();
  t.others.replace({t.records[1], t.records[2]}, 1, 1s);
  CHECK(reach.to_greet(t.others, false).empty());
  t.others.replace(t.records, 1, 2s);
  CHECK(reach.to_greet(t.others, false) == std::vector{t.peers[0]});
}
