#include "netem/port.hpp"
#include "tests/netem/support/small_world.hpp"

#include <caf/send.hpp>
#include <doctest/doctest.h>

using namespace shoal;
using namespace shoal::netem;
using namespace shoal::netem::testing;
using namespace std::chrono_literals;

TEST_CASE("an actor has one address and it is not the actor itself") {
  small_world w;
  auto h = w.host();
  auto local = w.spawn(h, [](puppet&) -> caf::behavior { return {[](const note&) {}}; });
  auto one = w.address(local), again = w.address(local);
  CHECK(one == again);
  CHECK(one != local);
  CHECK(port::live() == 1);
  w.run();
}

TEST_CASE("an answer comes to the asker by its address and takes the delay of the way back") {
  small_world w;
  w.net->set_path(w.here, w.here, {10ms, 0ms});
  auto a = w.host(8e12), b = w.host(8e12);
  std::vector<received> got;
  auto sink = w.collector(b, got);
  duration answered{};
  caf::strong_actor_ptr answerer;
  w.does(a, [&, sink](puppet& self) {
    self.request(sink, 1s, ask{5})
        .then(
            [&](const note& x) {
              CHECK(x.n == 5);
              answered = w.now();
              answerer = self.current_sender();
            },
            [](caf::error&) { CHECK(false); });
  });
  w.run();
  CHECK(answered / 1ms == 20);
  CHECK(answerer == caf::actor_cast<caf::strong_actor_ptr>(sink));
  answerer = nullptr;
}

TEST_CASE("a delegated request is charged to the host that delegates and answered to the asker") {
  small_world w;
  w.net->set_path(w.here, w.here, {10ms, 0ms});
  auto a = w.host(8e12), b = w.host(8e12), c = w.host(8e12);
  std::vector<received> got;
  auto last = w.collector(c, got);
  auto middle = w.spawn_public(b, [last](puppet& self) -> caf::behavior {
    return {[&self, last](const ask& x) { return self.delegate(last, x); }};
  });
  duration answered{};
  w.does(a, [&, middle](puppet& self) {
    self.request(middle, 1s, ask{5})
        .then([&](const note&) { answered = w.now(); }, [](caf::error&) { CHECK(false); });
  });
  w.run();
  std::vector<std::pair<host_index, host_index>> ways;
  for (auto& event : w.history)
    if (event.kind == event_kind::message) ways.emplace_back(event.from.host, event.to.host);
  CHECK(ways == std::vector<std::pair<host_index, host_index>>{{a, b}, {b, c}, {c, a}});
  CHECK(answered / 1ms == 30);
}

TEST_CASE("a delayed message to an address leaves at its time from the host that sent it") {
  small_world w;
  w.net->set_path(w.here, w.here, {10ms, 0ms});
  w.host(); // keeps the numbers of actors, hosts and ordinals apart
  auto a = w.host(8e12), b = w.host(8e12);
  std::vector<received> got;
  auto sink = w.collector(b, got);
  w.does(a, [sink](puppet& self) { self.delayed_send(sink, 1s, note{1}); });
  w.run();
  REQUIRE(got.size() == 1);
  CHECK(got[0].at / 1ms == 1010);
  REQUIRE(w.history.back().kind == event_kind::message);
  CHECK(w.history.back().from.host == a);
}

TEST_CASE("an address in a message reaches its actor over the network") {
  small_world w;
  w.net->set_path(w.here, w.here, {10ms, 0ms});
  auto a = w.host(8e12), b = w.host(8e12), c = w.host(8e12);
  std::vector<received> got;
  auto sink = w.collector(c, got);
  auto reader = w.spawn_public(b, [](puppet& self) -> caf::behavior {
    return {[&self](const intro& x) { self.send(x.who, note{3}); }};
  });
  w.does(a, [=](puppet& self) { self.send(reader, intro{sink}); });
  w.run();
  REQUIRE(got.size() == 1);
  CHECK(got[0].at / 1ms == 20);
  CHECK(w.history.back().from.host == b);
}

TEST_CASE("a raw handle that crosses hosts is counted once for each message that uses it") {
  small_world w;
  auto a = w.host(), b = w.host();
  int got = 0;
  auto leaked = w.spawn(b, [&](puppet&) -> caf::behavior { return {[&](const note&) { ++got; }}; });
  w.does(a, [leaked](puppet& self) { self.send(leaked, note{1}); });
  w.run();
  CHECK(got == 1);
  CHECK(w.net->bypassed() == 1);
  w.expected_bypassed = 1;
}

TEST_CASE("a raw handle is counted even when the message is delayed") {
  small_world w;
  auto a = w.host(), b = w.host();
  auto leaked = w.spawn(b, [](puppet&) -> caf::behavior { return {[](const note&) {}}; });
  w.does(a, [leaked](puppet& self) { self.delayed_send(leaked, 1s, note{1}); });
  w.run();
  CHECK(w.net->bypassed() == 1);
  w.expected_bypassed = 1;
}

TEST_CASE("messages that are not protocol messages are refused from another host and counted") {
  small_world w;
  auto a = w.host(), b = w.host();
  std::vector<received> got;
  auto sink = w.collector(b, got);
  w.does(a, [=](puppet& self) {
    self.send_exit(sink, caf::exit_reason::kill);
    self.send(sink, caf::down_msg{self.address(), caf::exit_reason::kill});
    self.send(sink, caf::make_error(caf::sec::runtime_error));
    self.send(sink, caf::exit_msg{self.address(), caf::exit_reason::kill});
    self.send(sink, std::string("nobody's message"));
    self.send(sink, note{1});
  });
  w.run();
  CHECK(w.net->refused() == 5);
  CHECK(got.size() == 1);
  CHECK(w.unexpected == 0);
  CHECK(w.net->live_actors(b) == 1);
}

TEST_CASE("an actor may end another one of its own host by its address") {
  small_world w;
  auto a = w.host();
  std::vector<received> got;
  auto sink = w.collector(a, got);
  w.does(a,
         [=](puppet& self) { self.send_exit(sink, caf::exit_reason::user_shutdown), self.quit(); });
  w.run();
  CHECK(w.net->live_actors(a) == 0);
  CHECK(w.net->refused() == 0);
}

TEST_CASE("priority does not overtake across hosts") {
  small_world w;
  auto a = w.host(8e12), b = w.host(8e12);
  std::vector<std::pair<std::uint32_t, bool>> got;
  auto sink = w.spawn_public(b, [&](puppet& self) -> caf::behavior {
    return {[&](const note& x) {
      got.emplace_back(x.n, self.current_mailbox_element()->mid.is_urgent_message());
    }};
  });
  w.does(a, [=](puppet& self) {
    self.send(sink, note{1});
    self.send<caf::message_priority::high>(sink, note{2});
  });
  w.run();
  CHECK(got == std::vector<std::pair<std::uint32_t, bool>>{{1, false}, {2, false}});
}

TEST_CASE("a request to an ended actor of a living host is refused after a round trip") {
  small_world w;
  w.net->set_path(w.here, w.here, {10ms, 0ms});
  auto a = w.host(8e12), b = w.host(8e12);
  auto ended = w.spawn_public(b, [](puppet& self) -> caf::behavior {
    self.quit();
    return {};
  });
  w.run();
  duration refused{};
  w.does_at(1s, a, [&](puppet& self) {
    self.request(ended, 3600s, ask{1})
        .then([](const note&) { CHECK(false); },
              [&](caf::error& why) {
                CHECK(why == caf::sec::request_receiver_down);
                refused = w.now();
              });
  });
  w.run();
  CHECK(refused / 1ms == 1020);
  CHECK(w.clock.pending_events() == 0);
}

TEST_CASE("a request to an ended actor of the same host is refused at once") {
  small_world w;
  auto a = w.host();
  auto ended = w.spawn_public(a, [](puppet& self) -> caf::behavior {
    self.quit();
    return {};
  });
  w.run();
  bool refused = false;
  w.does(a, [&](puppet& self) {
    self.request(ended, 3600s, ask{1})
        .then([](const note&) {},
              [&](caf::error& why) { refused = why == caf::sec::request_receiver_down; });
  });
  CHECK(w.run() == 0s);
  CHECK(refused);
}

TEST_CASE("an actor without references lives until it quits") {
  small_world w;
  auto a = w.host();
  w.spawn(a, [](puppet&) -> caf::behavior { return {[](const note&) {}}; });
  w.run();
  CHECK(w.net->live_actors(a) == 1);
  CHECK(w.clock.live_actors() == 1);
}
