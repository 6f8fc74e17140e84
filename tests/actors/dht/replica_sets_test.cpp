#include "actors/dht/replica_polls.hpp"
#include "actors/dht/replica_rank.hpp"
#include "actors/dht/replica_sets.hpp"
#include "tests/actors/support/mini_world.hpp"

#include <doctest/doctest.h>

using namespace shoal;
using namespace shoal::actors;
using namespace shoal::actors::testing;
using namespace std::chrono_literals;

namespace {

using keys = std::vector<std::string>;

/// The id at a distance from the key "k". Ids are then ordered like replicas.
node_id at(std::uint32_t step) {
  return distance(node_id::of_key("k"), {0, step, 0});
}
contact node(std::uint32_t step) {
  return {at(step), {}};
}

class silent : public caf::event_based_actor {
public:
  silent(caf::actor_config& config, host&) : caf::event_based_actor(config) {}
  caf::behavior make_behavior() override {
    return {[](const tick&) {}};
  }
};

struct fixture {
  node_id self = at(20);
  replica_sets sets{self, {3, 30s, 300s}};
  const replica_set& renew(std::vector<std::uint32_t> steps, duration now, bool read = false) {
    std::vector<contact> members;
    members.reserve(steps.size());
    for (const auto step : steps) members.push_back(node(step));
    return sets.renew("k", std::move(members), read, now);
  }
};

} // namespace

TEST_CASE("DHT replicas: a set is current while its farthest member confirms it, until its refresh "
          "at most") {
  fixture f;
  CHECK(f.sets.current("k", 0s) == nullptr);
  f.renew({10, 11, 12}, 0s);
  CHECK(f.sets.current("k", 29s) != nullptr);
  CHECK(f.sets.current("k", 30s) == nullptr);
  f.sets.confirmed("k", at(10), 29s); // not the farthest member
  CHECK(f.sets.current("k", 30s) == nullptr);
  f.sets.confirmed("k", at(12), 29s);
  CHECK(f.sets.current("k", 58s) != nullptr);
  for (auto now = 29s; now <= 300s; now += 10s) f.sets.confirmed("k", at(12), now);
  CHECK(f.sets.current("k", 299s) != nullptr);
  CHECK(f.sets.current("k", 300s) == nullptr);
  // This node is the farthest, so the member before it confirms.
  f.renew({10, 11, 20}, 400s);
  f.sets.confirmed("k", at(11), 420s);
  CHECK(f.sets.current("k", 440s) != nullptr);
  f.sets.confirmed("unknown", at(11), 0s);
}

TEST_CASE(
    "DHT replicas: a nearer node makes a full set stale, and any node a set that is not full") {
  fixture f;
  f.renew({10, 12, 14}, 0s);
  CHECK(f.sets.arrived(at(15)).empty());
  CHECK(f.sets.current("k", 1s) != nullptr);
  CHECK(f.sets.arrived(at(13)) == keys{"k"});
  CHECK(f.sets.current("k", 1s) == nullptr);
  f.renew({10, 12}, 1s);
  CHECK(f.sets.arrived(at(99)) == keys{"k"});
}

TEST_CASE("DHT replicas: a set is stale when a member leaves, or when this node's role changes") {
  fixture f;
  f.renew({10, 12, 14}, 0s);
  CHECK(f.sets.left(node(11)).empty());
  CHECK(f.sets.left(node(12)) == keys{"k"});
  CHECK(f.sets.find("k")->members.size() == 2);
  CHECK(f.sets.find("k")->stale);
  f.renew({10, 12, 14}, 0s);
  CHECK(f.sets.role_changed() == keys{"k"});
  CHECK(f.sets.find("k")->stale);
  f.renew({10, 12, 14}, 0s);
  f.sets.mark_stale("k");
  f.sets.mark_stale("unknown");
  CHECK(f.sets.current("k", 0s) == nullptr);
}

TEST_CASE(
    "DHT replicas: a member that says it is no replica is believed, except soon after a look-up") {
  fixture f;
  f.renew({10, 12, 14}, 0s);
  CHECK_FALSE(f.sets.denied("k", replica_sets::denial_timeout - 1ms));
  CHECK(f.sets.denied("k", replica_sets::denial_timeout));
  // The set is stale already.
  CHECK_FALSE(f.sets.denied("k", 10s));
  CHECK_FALSE(f.sets.denied("unknown", 10s));
}

TEST_CASE(
    "DHT replicas: a set stays merged while its members stay and this node misses no messages") {
  fixture f;
  CHECK_FALSE(f.renew({10, 12, 20}, 0s).merged);
  CHECK(f.renew({10, 12, 20}, 0s, true).merged);
  CHECK(f.renew({10, 12, 20}, 1s).merged);
  CHECK_FALSE(f.renew({10, 13, 20}, 2s).merged);
  CHECK(f.renew({10, 12, 20}, 3s, true).merged);
  CHECK(f.sets.holds("k"));
  f.sets.missed_messages();
  CHECK_FALSE(f.sets.find("k")->merged);
  // This node is no replica, so it polls for changes in any case.
  f.renew({10, 12, 14}, 4s, true);
  CHECK_FALSE(f.sets.holds("k"));
  f.sets.missed_messages();
  CHECK(f.sets.find("k")->merged);
}

TEST_CASE("DHT replicas: an unused set is forgotten") {
  fixture f;
  f.renew({10}, 0s);
  f.sets.drop_idle(120s, 120s, [](const std::string&) { return false; });
  CHECK(f.sets.find("k") != nullptr);
  f.sets.drop_idle(121s, 120s, [](const std::string& key) { return key == "k"; });
  CHECK(f.sets.find("k") != nullptr);
  f.sets.drop_idle(121s, 120s, [](const std::string&) { return false; });
  CHECK(f.sets.find("k") == nullptr);
}

TEST_CASE("DHT replicas: a node takes its place among the nearest") {
  const auto target = node_id::of_key("k");
  const auto steps = [&](std::vector<contact> nearest, std::uint32_t self, std::size_t most) {
    std::vector<std::uint32_t> out;
    for (const auto& c : with_self(target, std::move(nearest), node(self), most))
      out.push_back(static_cast<std::uint32_t>(distance(target, c.id).middle));
    return out;
  };
  CHECK(steps({}, 5, 3) == std::vector<std::uint32_t>{5});
  CHECK(steps({node(1), node(9)}, 5, 3) == std::vector<std::uint32_t>{1, 5, 9});
  CHECK(steps({node(1), node(9)}, 5, 2) == std::vector<std::uint32_t>{1, 5});
  CHECK(steps({node(1), node(2)}, 5, 2) == std::vector<std::uint32_t>{1, 2});
}

TEST_CASE("DHT replicas: other nodes are nearer when the routing table has enough of them") {
  mini_world world;
  const caf::actor address = world.spawn<silent>(world.add_host("here"));
  replica_rank rank(at(20), 2);
  routing_table table(at(20));
  CHECK_FALSE(rank.others_nearer("k", table));
  table.seen({at(10), address}, 0s);
  table.seen({at(30), address}, 0s);
  CHECK_FALSE(rank.others_nearer("k", table));
  table.seen({at(11), address}, 0s);
  CHECK(rank.others_nearer("k", table));
  table.remove(at(11));
  CHECK_FALSE(rank.others_nearer("k", table));
}

TEST_CASE("DHT polls: replicas are asked one after the other, each once") {
  replica_polls polls(at(20));
  const std::vector<contact> replicas{node(10), node(20), node(12), node(13)};
  const auto next = [&](std::uint32_t left_alone = 0) {
    return polls.next("k", replicas, [&](const contact& c) { return c.id == at(left_alone); });
  };
  const auto first = next(), second = next(), third = next();
  REQUIRE((first.ask && second.ask && third.ask));
  for (const auto& one : {first, second, third}) CHECK(one.ask->id != at(20));
  CHECK(first.ask->id != second.ask->id);
  CHECK(second.ask->id != third.ask->id);
  CHECK(polls.contains("k"));
  const auto none = next();
  CHECK_FALSE(none.ask);
  // Three answers are missing.
  CHECK_FALSE(none.exhausted);
  CHECK_FALSE(polls.failed("k"));
  CHECK_FALSE(polls.failed("k"));
  CHECK(polls.failed("k"));
  CHECK(next().exhausted);
  CHECK_FALSE(polls.contains("k"));
  CHECK_FALSE(polls.failed("k"));
}

TEST_CASE("DHT polls: a node that is left alone is not asked, and an answer ends the poll") {
  replica_polls polls(at(20));
  const std::vector<contact> replicas{node(10), node(11)};
  const auto step = polls.next("k", replicas, [&](const contact& c) { return c.id == at(10); });
  REQUIRE(step.ask);
  CHECK(step.ask->id == at(11));
  polls.end("k");
  CHECK_FALSE(polls.contains("k"));
  CHECK(polls.next("k", replicas, [](const contact&) { return true; }).exhausted);
}
