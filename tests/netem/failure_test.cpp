// The failure semantics of docs/failures.md, which are equal in all worlds: each sentence is a
// test.
#include "tests/netem/support/small_world.hpp"

#include <caf/send.hpp>
#include <doctest/doctest.h>

#include <map>

using namespace shoal;
using namespace shoal::netem;
using namespace shoal::netem::testing;
using namespace std::chrono_literals;

namespace {

constexpr double fast = 8e12;

/// Starts an actor on `on` that monitors `whom`, and records when it learns of the end.
void watch(small_world& w, host_index on, const caf::actor& whom, std::vector<received>& downs,
           std::uint32_t n = 0) {
  w.does(on, [&, whom, n](puppet& self) {
    self.on_down = [&downs, n, &w, expected = whom.address()](const caf::down_msg& down) {
      CHECK(down.source == expected);
      downs.push_back({w.now(), n});
    };
    self.monitor(whom);
  });
}

caf::actor idle(small_world& w, host_index on) {
  return w.spawn_public(on, [](puppet&) -> caf::behavior { return {[](const note&) {}}; });
}

} // namespace

TEST_CASE("each observer sees the kill of a process after its own delay") {
  small_world w;
  auto near = w.net->add_region("near"), far = w.net->add_region("far");
  w.net->set_path(w.here, near, {10ms, 0ms});
  w.net->set_path(w.here, far, {200ms, 0ms});
  auto dying = w.host();
  auto b = w.net->start_host(w.net->add_machine("b", near, {fast}, {fast}));
  auto c = w.net->start_host(w.net->add_machine("c", far, {fast}, {fast}));
  auto target = idle(w, dying);
  std::vector<received> downs;
  watch(w, b, target, downs, 1);
  watch(w, c, target, downs, 2);
  w.clock.at(1s, [&] { CHECK(w.net->kill(dying, kill_scope::process)); });
  w.run();
  CHECK(downs == std::vector<received>{{1s + 10ms, 1}, {1s + 200ms, 2}});
}

TEST_CASE("each observer sees the kill of a machine after the detection time") {
  small_world w;
  w.net->set_path(w.here, w.here, {10ms, 0ms});
  auto dying = w.host(), b = w.host();
  auto target = idle(w, dying);
  std::vector<received> downs;
  watch(w, b, target, downs);
  w.clock.at(1s, [&] { w.net->kill(dying, kill_scope::machine); });
  w.run();
  CHECK(downs == std::vector<received>{{6s, 0}});
}

TEST_CASE("the end of an actor is seen after one delay and on its own host at once") {
  small_world w;
  w.net->set_path(w.here, w.here, {10ms, 0ms});
  auto a = w.host(), b = w.host();
  auto target = w.spawn_public(a, [](puppet& self) -> caf::behavior {
    self.delayed_send(&self, 1s, note{1});
    return {[&self](const note&) { self.quit(); }};
  });
  std::vector<received> downs;
  watch(w, a, target, downs, 1);
  watch(w, b, target, downs, 2);
  w.run();
  CHECK(downs == std::vector<received>{{1s, 1}, {1s + 10ms, 2}});
}

TEST_CASE("the end of an actor does not overtake its messages in flight") {
  small_world w;
  w.net->set_path(w.here, w.here, {10ms, 0ms});
  auto a = w.host(8e3), b = w.host(fast);
  std::vector<received> got, downs;
  caf::actor sink = w.collector(b, got);
  auto target = w.spawn_public(a, [sink](puppet& self) -> caf::behavior {
    self.delayed_send(&self, 1s, note{1});
    return {[&self, sink](const note&) {
      for (std::uint32_t n = 0; n < 5; ++n) self.send(sink, note{n});
      self.quit();
    }};
  });
  watch(w, b, target, downs);
  w.run();
  REQUIRE(got.size() == 5);
  REQUIRE(downs.size() == 1);
  CHECK(downs[0].at >= got.back().at);
}

TEST_CASE("the end of an actor takes its delay although earlier messages have long arrived") {
  small_world w;
  w.net->set_path(w.here, w.here, {10ms, 0ms});
  auto a = w.host(fast), b = w.host(fast);
  std::vector<received> got, downs;
  caf::actor sink = w.collector(b, got);
  auto target = w.spawn_public(a, [sink](puppet& self) -> caf::behavior {
    self.send(sink, note{0});
    self.delayed_send(&self, 1s, note{1});
    return {[&self](const note&) { self.quit(); }};
  });
  watch(w, b, target, downs);
  w.run();
  REQUIRE(got.size() == 1);
  CHECK(downs == std::vector<received>{{1s + 10ms, 0}});
}

TEST_CASE("a pending request to a lost host ends by its own timeout") {
  for (auto scope : {kill_scope::process, kill_scope::machine}) {
    small_world w;
    w.net->set_path(w.here, w.here, {10ms, 0ms});
    auto dying = w.host(), b = w.host();
    auto silent = w.spawn_public(dying, [](puppet& self) -> caf::behavior {
      return {[&self](const ask&) { return self.make_response_promise<note>(); }};
    });
    std::vector<std::pair<duration, caf::error>> ends;
    auto request = [&](puppet& self) {
      self.request(silent, 30s, ask{1})
          .then([](const note&) { CHECK(false); },
                [&](caf::error& why) { ends.emplace_back(w.now(), why); });
    };
    w.does(b, request);        // the host dies with the request
    w.does_at(2s, b, request); // the host is dead when it is asked
    w.clock.at(1s, [&] { w.net->kill(dying, scope); });
    w.run();
    REQUIRE(ends.size() == 2);
    CHECK(ends[0].first == 30s);
    CHECK(ends[0].second == caf::sec::request_timeout);
    CHECK(ends[1].first == 32s);
    CHECK(ends[1].second == caf::sec::request_timeout);
  }
}

TEST_CASE("bytes that had not left a dead host are lost and bytes in flight arrive") {
  small_world w;
  w.net->set_path(w.here, w.here, {1s, 0ms});
  auto dying = w.host(8e6), b = w.host(8e6);
  std::vector<received> got;
  auto sink = w.collector(b, got);
  w.does(dying, [=](puppet& self) {
    for (std::uint32_t n = 1; n <= 3; ++n) self.send(sink, bulk{n, std::string(100'000, 'x')});
  });
  w.clock.at(150ms, [&] { // one message has left, one is being sent, one waits
    CHECK(w.net->active_flows() == 1);
    w.net->kill(dying, kill_scope::machine);
    CHECK(w.net->active_flows() == 0);
    CHECK(w.net->orphaned_flows() == 0);
  });
  w.run();
  REQUIRE(got.size() == 1);
  CHECK(got[0].n == 1);
  CHECK(w.net->lost() == 2);
}

TEST_CASE("small messages that wait for the uplink die with their host") {
  small_world w;
  w.net->set_path(w.here, w.here, {1s, 0ms});
  auto dying = w.host(8e3), b = w.host(fast); // 1000 bytes in a second
  std::vector<received> got;
  auto sink = w.collector(b, got);
  w.does(dying, [=](puppet& self) {
    for (std::uint32_t n = 1; n <= 10; ++n) self.send(sink, note{n});
  });
  w.clock.at(250ms, [&] { w.net->kill(dying, kill_scope::process); });
  w.run();
  auto bytes = w.wire_bytes_of("note");
  CHECK(got.size() == 250 / bytes);
  CHECK(w.net->lost() == 10 - got.size());
  // The messages do not occupy the uplink of the next incarnation.
  auto reborn = w.restart(dying);
  auto start = w.now();
  w.does(reborn, [=](puppet& self) { self.send(sink, note{99}); });
  w.run();
  CHECK(got.back().n == 99);
  CHECK(got.back().at == start + 1s + at_rate(bytes, 8e3));
}

TEST_CASE("bytes to a dead host are lost and the sender's link is free again") {
  small_world w;
  auto a = w.host(8e6), dying = w.host(8e6), c = w.host(8e6);
  std::vector<received> none, got;
  auto to_dead = w.collector(dying, none), to_c = w.collector(c, got);
  w.does(a, [=](puppet& self) {
    self.send(to_dead, bulk{1, std::string(1'000'000, 'x')});
    self.send(to_c, bulk{2, std::string(1'000'000, 'x')});
  });
  w.clock.at(1s, [&] { w.net->kill(dying, kill_scope::machine); });
  w.run();
  CHECK(none.empty());
  REQUIRE(got.size() == 1);
  // One second passes at half the rate; the rest takes the full rate.
  auto bytes = w.wire_bytes_of("bulk");
  CHECK(std::abs((got[0].at - (at_rate(bytes, 8e6) + 500ms)).count()) <= 2);
}

TEST_CASE("nothing leaves a dead host even in the middle of the handler that was killed") {
  small_world w;
  auto dying = w.host(), b = w.host();
  std::vector<received> got;
  auto sink = w.collector(b, got);
  int children = 0, later = 0;
  w.does(dying, [&, sink](puppet& self) {
    self.become(caf::behavior{[&](const note&) { ++later; }});
    self.send(&self, note{0});
    self.send(sink, note{1});
    w.net->kill(dying, kill_scope::process);
    self.send(sink, note{2});
    self.request(sink, 1s, ask{3}).then([](const note&) { CHECK(false); }, [](caf::error&) {});
    self.delayed_send(sink, 1s, note{4});
    self.child([&, sink](puppet& child) -> caf::behavior {
      ++children;
      child.send(sink, note{5});
      child.delayed_send(&child, 1s, note{6});
      return {[&](const note&) { ++later; }};
    });
  });
  w.run();
  // Messages that reached the uplink in the same instant had not left.
  CHECK(got.empty());
  CHECK(children <= 1);
  CHECK(later == 0);
  CHECK(w.net->live_actors(dying) == 0);
  CHECK(w.clock.live_actors() == 1);
}

TEST_CASE("nothing enters a dead host") {
  small_world w;
  w.net->set_path(w.here, w.here, {100ms, 0ms});
  auto a = w.host(), dying = w.host();
  std::vector<received> got;
  auto sink = w.collector(dying, got);
  w.does(a, [=](puppet& self) { self.send(sink, note{1}); }); // in flight when the host dies
  w.clock.at(50ms, [&] { w.net->kill(dying, kill_scope::process); });
  w.does_at(1s, a, [=](puppet& self) { self.send(sink, note{2}); });
  w.run();
  CHECK(got.empty());
  CHECK(w.net->lost() == 2);
}

TEST_CASE("a restarted host is a new incarnation and old handles never equal new ones") {
  small_world w;
  auto a = w.host(), first = w.host();
  std::vector<received> before, after;
  auto old = w.collector(first, before);
  w.run();
  w.net->kill(first, kill_scope::process);
  w.run();
  auto second = w.restart(first);
  CHECK(second != first);
  CHECK(w.net->machine_of(second) == w.net->machine_of(first));
  CHECK(w.net->incarnation(second) == w.net->incarnation(first) + 1);
  CHECK(w.net->name_of(second) == w.net->name_of(first));
  CHECK_FALSE(w.net->alive(first));
  CHECK(w.net->alive(second));
  CHECK(w.net->host_on(w.net->machine_of(first)) == second);
  auto reborn = w.collector(second, after);
  CHECK(old != reborn);
  CHECK(old.id() == reborn.id()); // both have the same ordinal
  CHECK(old.node() != reborn.node());
  w.does(a, [=](puppet& self) {
    self.send(old, note{1});
    self.send(reborn, note{2});
  });
  w.run();
  CHECK(before.empty());
  CHECK(after.size() == 1);
}

TEST_CASE("a dead host cannot be killed again and its machine can") {
  small_world w;
  auto a = w.host();
  CHECK(w.net->kill(a, kill_scope::process));
  CHECK_FALSE(w.net->kill(a, kill_scope::machine));
  CHECK(w.net->kill(w.restart(a), kill_scope::process));
}

TEST_CASE("an actor that begins to monitor an ended actor learns of the end after the delay") {
  small_world w;
  w.net->set_path(w.here, w.here, {10ms, 0ms});
  auto dying = w.host(), b = w.host();
  auto target = idle(w, dying);
  w.run();
  w.net->kill(dying, kill_scope::process);
  w.run();
  std::vector<received> downs;
  w.clock.at(1s, [&] { watch(w, b, target, downs); });
  w.run();
  CHECK(downs == std::vector<received>{{1s + 10ms, 0}});
}

TEST_CASE("an actor that begins to monitor a permanently gone actor hears so from a host at its "
          "address") {
  small_world w;
  w.net->set_path(w.here, w.here, {10ms, 0ms});
  auto dying = w.host(), b = w.host();
  auto target = idle(w, dying);
  std::vector<caf::error> why;
  const auto ask_at = [&](duration when) {
    w.clock.at(when, [&] {
      w.does(b, [&](puppet& self) {
        self.on_down = [&](const caf::down_msg& down) { why.push_back(down.reason); };
        self.monitor(target);
      });
    });
  };
  w.clock.at(1s, [&] { w.net->kill(dying, kill_scope::process); });
  ask_at(2s); // nobody answers, and the host might come back
  w.clock.at(3s, [&] { w.restart(dying); });
  ask_at(4s);
  std::uint64_t number = 0;
  w.clock.at(5s, [&] {
    number = w.net->add_cut(cut::between({w.net->machine_of(b)}, traffic_direction::both));
  });
  ask_at(6s); // the cut keeps the answer from the watcher
  w.run();
  REQUIRE(why.size() == 3);
  CHECK(why[0] == caf::exit_reason::unreachable);
  CHECK_FALSE(why[1]);
  CHECK(why[2] == caf::exit_reason::unreachable);
}

TEST_CASE("an actor that stops monitoring learns nothing even if the news is on its way") {
  small_world w;
  w.net->set_path(w.here, w.here, {100ms, 0ms});
  auto dying = w.host(), b = w.host();
  auto target = idle(w, dying);
  int downs = 0;
  for (auto stop_at : {500ms, 1050ms})
    w.does(b, [&, stop_at](puppet& self) {
      self.on_down = [&](const caf::down_msg&) { ++downs; };
      self.monitor(target);
      self.become(caf::behavior{[&self, &target](const note&) { self.demonitor(target); }});
      self.delayed_send(&self, stop_at, note{1});
    });
  std::vector<received> others;
  watch(w, b, target, others);
  w.clock.at(1s, [&] { w.net->kill(dying, kill_scope::process); });
  w.run();
  CHECK(downs == 0);
  CHECK(others.size() == 1);
}

TEST_CASE("an observer on a dead host is not told") {
  small_world w;
  w.net->set_path(w.here, w.here, {100ms, 0ms});
  auto dying = w.host(), b = w.host();
  auto target = idle(w, dying);
  std::vector<received> downs;
  watch(w, b, target, downs);
  w.clock.at(1s, [&] { w.net->kill(dying, kill_scope::process); });
  w.clock.at(1050ms, [&] { w.net->kill(b, kill_scope::process); });
  w.run();
  CHECK(downs.empty());
}

TEST_CASE("each death is one event of history for each observer") {
  small_world w;
  auto dying = w.host(), b = w.host();
  auto target = idle(w, dying);
  std::vector<received> downs;
  watch(w, b, target, downs, 1);
  watch(w, b, target, downs, 2);
  w.run();
  w.net->kill(dying, kill_scope::process);
  w.run();
  std::map<event_kind, int> count;
  for (auto& event : w.history) ++count[event.kind];
  CHECK(count[event_kind::host_started] == 2);
  CHECK(count[event_kind::host_killed] == 1);
  CHECK(count[event_kind::down] == 2);
}
