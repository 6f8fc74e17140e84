#include "netem/coordinator.hpp"
#include "tests/netem/support/small_world.hpp"

#include <caf/send.hpp>
#include <doctest/doctest.h>

#include <memory>

using namespace shoal;
using namespace shoal::netem;
using namespace shoal::netem::testing;
using namespace std::chrono_literals;

TEST_CASE("virtual time jumps from event to event and stops at the limit or when idle") {
  small_world w;
  std::vector<duration> seen;
  for (auto when : {3s, 1s, 2s}) w.clock.at(when, [&] { seen.push_back(w.now()); });
  CHECK(w.clock.run(2500ms) == 2500ms);
  CHECK(seen == std::vector<duration>{1s, 2s});
  CHECK(w.run() == 3s);
  CHECK(seen.size() == 3);
}

TEST_CASE("an event that is scheduled in the past happens now") {
  small_world w;
  duration seen{};
  w.clock.at(5s, [&] { w.clock.at(1s, [&] { seen = w.now(); }); });
  w.run();
  CHECK(seen == 5s);
}

TEST_CASE("a requested stop ends the run after the current event") {
  small_world w;
  int happened = 0;
  w.clock.at(1s, [&] { ++happened, w.clock.request_stop(); });
  w.clock.at(2s, [&] { ++happened; });
  w.run();
  CHECK(happened == 1);
  w.run();
  CHECK(happened == 2);
}

TEST_CASE("one hundred thousand answered requests leave no timers and an idle world does not wait "
          "for them") {
  small_world w;
  auto h = w.host();
  std::vector<received> got;
  auto server = w.collector(h, got);
  int answers = 0;
  w.does(h, [&, server](puppet& self) {
    for (std::uint32_t i = 0; i < 100'000; ++i)
      self.request(server, 3600s, ask{i})
          .then([&](const note&) { ++answers; }, [](caf::error&) { CHECK(false); });
  });
  auto end = w.run();
  CHECK(answers == 100'000);
  CHECK(w.clock.pending_events() == 0);
  CHECK(end == 0s);
}

TEST_CASE("answers over the network drop the timers of their requests too") {
  small_world w;
  w.net->set_path(w.here, w.here, {10ms, 0ms});
  auto a = w.host(), b = w.host();
  std::vector<received> got;
  auto server = w.collector(b, got);
  int answers = 0;
  w.does(a, [&, server](puppet& self) {
    for (std::uint32_t i = 0; i < 1000; ++i)
      self.request(server, 3600s, ask{i})
          .then([&](const note&) { ++answers; }, [](caf::error&) { CHECK(false); });
  });
  auto end = w.run();
  CHECK(answers == 1000);
  CHECK(w.clock.pending_events() == 0);
  CHECK(end < 1s);
}

TEST_CASE("a request that nobody answers ends exactly at its timeout") {
  small_world w;
  auto h = w.host();
  auto silent = w.spawn(h, [](puppet& self) -> caf::behavior {
    return {[&self](const ask&) { return self.make_response_promise<note>(); }};
  });
  duration ended{};
  w.does_at(2s, h, [&, silent](puppet& self) {
    self.request(silent, 3s, ask{1})
        .then([](const note&) { CHECK(false); },
              [&](caf::error& why) {
                CHECK(why == caf::sec::request_timeout);
                ended = w.now();
              });
  });
  w.run();
  CHECK(ended == 5s);
}

TEST_CASE("the timers of an actor end with it") {
  small_world w;
  auto h = w.host();
  auto before = puppet::live();
  auto silent = w.spawn(h, [](puppet& self) -> caf::behavior {
    return {[&self](const ask&) { return self.make_response_promise<note>(); }};
  });
  w.does(h, [&, silent](puppet& self) {
    for (int i = 0; i < 100; ++i) self.delayed_send(&self, 1h, note{1});
    for (int i = 0; i < 100; ++i)
      self.request(silent, 3600s, ask{1}).then([](const note&) {}, [](caf::error&) {});
    self.quit();
  });
  CHECK(w.run() == 0s);
  CHECK(w.clock.pending_events() == 0);
  CHECK(puppet::live() == before + 1);
}

TEST_CASE("children of an actor live on its host and timers run on behalf of it") {
  small_world w;
  auto a = w.host(), b = w.host();
  std::vector<std::pair<std::string, host_index>> seen;
  auto see = [&](std::string what) {
    seen.emplace_back(std::move(what), coordinator::current_host());
  };
  for (auto h : {a, b})
    w.does(h, [&, see](puppet& self) {
      see("start");
      self.become(caf::behavior{[&, see](const note& x) {
        see("timer");
        if (x.n == 1)
          self.child([see](puppet& child) -> caf::behavior {
            see("child");
            child.child([see](puppet& grandchild) -> caf::behavior {
              see("grandchild");
              grandchild.quit();
              return {};
            });
            child.delayed_send(&child, 1s, note{2});
            return {[see](const note&) { see("timer"); }};
          });
      }});
      self.delayed_send(&self, 1s, note{1});
    });
  w.run();
  CHECK(seen.size() == 10);
  int on_a = 0;
  for (auto& [what, host] : seen) {
    CHECK((host == a || host == b));
    on_a += host == a;
  }
  CHECK(on_a == 5);
  CHECK(coordinator::current_host() == no_host);
  CHECK(w.clock.host_of(0) == no_host);
}

TEST_CASE("an event may schedule another when it is cancelled") {
  small_world w;
  int happened = 0;
  auto token = std::shared_ptr<void>(nullptr, [&](void*) { w.clock.at(1s, [&] { ++happened; }); });
  auto handle = w.clock.at(9s, [token = std::move(token)] {});
  CHECK(w.clock.cancel(handle));
  CHECK(w.run() == 1s);
  CHECK(happened == 1);
}

TEST_CASE(
    "on the wall clock timers and requests are served on time and no actor runs twice at once") {
  std::atomic<int> answers{0}, overlaps{0}, timers{0};
  {
    small_world w(time_mode::wall_clock, 1, 4);
    w.net->set_path(w.here, w.here, {1ms, 0ms});
    std::vector<caf::actor> servers;
    for (int i = 0; i < 8; ++i)
      servers.push_back(w.spawn_public(w.host(8e9), [&](puppet&) -> caf::behavior {
        auto inside = std::make_shared<std::atomic<int>>(0);
        return {[&overlaps, inside](const ask& x) {
                  if (inside->fetch_add(1) != 0) ++overlaps;
                  volatile int spin = 0;
                  while (spin < 200) spin = spin + 1;
                  inside->fetch_sub(1);
                  return note{x.n};
                },
                [](const bulk&) {}};
      }));
    for (int i = 0; i < 8; ++i)
      w.does(w.host(8e9), [&, servers](puppet& self) {
        for (std::uint32_t n = 0; n < 200; ++n)
          for (auto& server : servers)
            self.request(server, 30s, ask{n})
                .then([&](const note&) { ++answers; }, [](caf::error&) {});
        for (auto& server : servers) self.send(server, bulk{1, std::string(20'000, 'x')});
        self.become(caf::behavior{[&](const note&) { ++timers; }});
        self.delayed_send(&self, 50ms, note{1});
      });
    for (int i = 0;
         i < 200 && (answers < 8 * 8 * 200 || timers < 8 || w.clock.pending_events() > 0); ++i)
      w.clock.run(w.now() + 100ms);
    CHECK(answers == 8 * 8 * 200);
    CHECK(timers == 8);
    CHECK(overlaps == 0);
    CHECK(w.net->active_flows() == 0);
    CHECK(w.clock.pending_events() == 0);
  }
}

TEST_CASE("on the wall clock a bulk transfer takes its time and is not late") {
  std::atomic<std::int64_t> arrived{0};
  small_world w(time_mode::wall_clock, 1, 1);
  auto a = w.host(80e6), b = w.host(80e6); // 10 MB/s
  auto sink = w.spawn_public(b, [&](puppet& self) -> caf::behavior {
    return {[&](const bulk&) { arrived = self.world().now().count(); }};
  });
  w.clock.run(30ms);
  auto start = w.now();
  w.does(a, [sink](puppet& self) { self.send(sink, bulk{1, std::string(1'000'000, 'x')}); });
  while (arrived == 0 && w.now() < start + 5s) w.clock.run(w.now() + 10ms);
  auto took = duration{arrived.load()} - start;
  CHECK(took > 100ms);
  CHECK(took < 200ms); // 103 ms, and the delays of a busy machine
}
