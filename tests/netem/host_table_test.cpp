#include "netem/host_table.hpp"
#include "netem/message_table.hpp"
#include "netem/small_lines.hpp"
#include "tests/netem/support/small_world.hpp"

#include <doctest/doctest.h>

using namespace shoal;
using namespace shoal::netem;
using namespace shoal::netem::testing;
using namespace std::chrono_literals;

namespace {

host_state on_machine(machine_index machine, const std::string& name = "m",
                      std::uint32_t incarnation = 0, bool elsewhere = false) {
  return {.where = {machine, 0},
          .up = data_rate{8e6},
          .incarnation = incarnation,
          .elsewhere = elsewhere,
          .node = host_table::node_of(name, incarnation),
          .jitter = stream(1, "test")};
}

fabric_link no_fabric() {
  return std::make_shared<std::atomic<fabric_state*>>(nullptr);
}

} // namespace

TEST_CASE("incarnations of a machine count up and a given number sets the count") {
  host_table t(nullptr, nullptr);
  CHECK(t.running(3) == no_host);
  CHECK(t.next_incarnation(3, {}) == 0);
  CHECK(t.next_incarnation(3, {}) == 1);
  CHECK(t.next_incarnation(3, 7) == 7);
  CHECK(t.next_incarnation(3, {}) == 8);
  CHECK(t.next_incarnation(2, {}) == 0);
  const auto host = t.add(on_machine(3));
  t.set_running(3, host);
  CHECK(t.running(3) == host);
  CHECK(t.running(2) == no_host);
}

TEST_CASE("a node id has the name of its machine and the number of its incarnation") {
  const auto first = host_table::node_of("home-1", 0), fourth = host_table::node_of("home-1", 4);
  CHECK(host_table::is_ours(fourth));
  CHECK(host_table::incarnation_in(fourth) == 4);
  CHECK(host_table::first_of(fourth) == first);
  CHECK(host_table::first_of(host_table::node_of("home-2", 4)) != first);
  CHECK_FALSE(host_table::is_ours(caf::node_id{}));
  // CAF takes process id 0 for an invalid node, so the largest incarnation has no node id.
  CHECK_FALSE(host_table::is_ours(host_table::node_of("home-1", 0xffffffff)));
}

TEST_CASE("hosts and machines are found by their node ids once they are named") {
  host_table t(nullptr, nullptr);
  const auto host = t.add(on_machine(5, "home-1", 2));
  CHECK(t.find(host_table::node_of("home-1", 2)) == no_host);
  t.name(host);
  t.name_machine(host_table::node_of("home-1", 0), 5);
  CHECK(t.find(host_table::node_of("home-1", 2)) == host);
  CHECK(t.find(host_table::node_of("home-1", 3)) == no_host);
  CHECK(t.machine_of(host_table::node_of("home-1", 0)) == 5);
  CHECK_FALSE(t.machine_of(host_table::node_of("home-2", 0)));
}

TEST_CASE(
    "actors of a host are numbered in the order of their births and forgotten at their ends") {
  small_world w;
  host_table t(&*w.system, no_fabric());
  const auto a = t.add(on_machine(0)), b = t.add(on_machine(1));
  const auto where = w.host();
  const auto born = [&](host_index on) {
    const auto actor = caf::actor_cast<caf::strong_actor_ptr>(
        w.spawn(where, [](puppet&) -> caf::behavior { return {[](const note&) {}}; }));
    t.born(on, actor);
    return actor;
  };
  const auto first = born(a), other = born(b), second = born(a);
  REQUIRE(t.find(second->id()) != nullptr);
  CHECK(t.find(first->id())->where.ordinal == 0);
  CHECK(t.find(second->id())->where.ordinal == 1);
  CHECK(t.find(other->id())->where.host == b);

  const auto port = t.port_of(second);
  CHECK(port->id() == 2); // the ordinal plus one
  CHECK(port->node() == t[a].node);
  CHECK(t.port_of(second) == port);

  const auto ended = t.ended(second->id());
  REQUIRE(ended);
  CHECK(ended->what.port == port);
  CHECK(ended->actor == second);
  CHECK_FALSE(t.ended(second->id()));
  CHECK(t.find(second->id()) == nullptr);
  CHECK(t.port_of(second) == nullptr);
  CHECK(t[a].actors.size() == 1);
  w.run();
}

TEST_CASE("addresses of actors elsewhere are stable while used and are dropped later") {
  small_world w;
  host_table t(&*w.system, no_fabric());
  const auto away = t.add(on_machine(0, "away", 0, true));
  std::vector<caf::strong_actor_ptr> dropped;
  const auto kept = t.port_at(away, 1000, dropped);
  CHECK(t.port_at(away, 1000, dropped) == kept);
  for (std::uint32_t ordinal = 0; ordinal < 63; ++ordinal) t.port_at(away, ordinal, dropped);
  CHECK(dropped.empty());
  const auto last = t.port_at(away, 63, dropped);
  CHECK(dropped.size() == 63);
  CHECK(t[away].ports.size() == 2);
  CHECK(t.port_at(away, 1000, dropped) == kept);
  t[away].alive = false; // a dead host keeps none
  t.port_at(away, 2000, dropped);
  CHECK(t[away].ports.size() == 2);
}

TEST_CASE("small messages of a pair arrive in order and an idle pair is forgotten") {
  small_lines lines;
  CHECK(lines.in_order(1, 50ms, 0s) == 50ms);
  CHECK(lines.in_order(1, 30ms, 10ms) == 50ms);
  CHECK(lines.in_order(2, 30ms, 10ms) == 30ms);
  CHECK(lines.behind_last(1, 7ms) == 50ms);
  CHECK(lines.behind_last(1, 7s) == 7s);
  CHECK(lines.behind_last(3, 7ms) == 7ms);
  for (std::uint64_t pair = 10; pair < 1000; ++pair) lines.in_order(pair, 2s, 1s);
  CHECK(lines.behind_last(1, 7ms) == 7ms);
  CHECK(lines.behind_last(999, 7ms) == 2s);
}

TEST_CASE("message numbers are reused and a taken message leaves nothing behind") {
  message_table t;
  const auto first = t.keep({.address = {}, .element = {}, .from = {}, .to = {}, .bytes = 1});
  const auto second = t.keep({.address = {}, .element = {}, .from = {}, .to = {}, .bytes = 2});
  CHECK(first != second);
  CHECK(t.take(first).bytes == 1);
  CHECK(t.keep({.address = {}, .element = {}, .from = {}, .to = {}, .bytes = 3}) == first);
  CHECK(t[second].bytes == 2);
  CHECK(t[first].line == no_index);
  CHECK(t.take_all().size() == 2);
  CHECK(t.keep({.address = {}, .element = {}, .from = {}, .to = {}}) == 0);
}

namespace {

/// An observer that counts its end.
struct hook final : caf::attachable {
  explicit hook(int& count) : count_(count) {}
  ~hook() override { ++count_; }
  int& count_;
};

} // namespace

TEST_CASE("observers keep their numbers and their order while others are taken") {
  int ended = 0;
  observer_list list;
  for (host_index host = 0; host < 4; ++host)
    list.add(list.make(caf::attachable_ptr{new hook(ended)}, host));
  CHECK(list.take(2)->host == 2);
  CHECK_FALSE(list.take(2));
  auto even = list.take_if([](const observer& o) { return o.host % 2 == 0; });
  CHECK(even.size() == 1);
  CHECK(ended == 1);
  std::vector<std::uint64_t> left;
  for (const auto& each : list) left.push_back(each.number);
  CHECK(left == std::vector<std::uint64_t>{1, 3});
  CHECK(list.make(nullptr, 9).number == 4);
  CHECK_FALSE(list.needs_collection());
  CHECK(list.take_all().size() == 2);
  CHECK(list.empty());
  CHECK(ended == 3);
}
