#include "tests/netem/support/small_world.hpp"

#include <caf/send.hpp>
#include <doctest/doctest.h>

#include <cstdio>

using namespace shoal;
using namespace shoal::netem;
using namespace shoal::netem::testing;
using namespace std::chrono_literals;

#if defined(__SANITIZE_ADDRESS__)
extern "C" std::size_t __sanitizer_get_current_allocated_bytes();
#else
#include <malloc.h>
#endif

namespace {

/// The allocated bytes.
std::int64_t allocated() {
#if defined(__SANITIZE_ADDRESS__)
  return static_cast<std::int64_t>(__sanitizer_get_current_allocated_bytes());
#else
  return static_cast<std::int64_t>(mallinfo2().uordblks + mallinfo2().hblkhd);
#endif
}

/// An actor that knows its own address, as protocol actors do.
class self_aware final : public puppet {
public:
  self_aware(caf::actor_config& config, small_world& in)
      : puppet(config, in, [](puppet&) -> caf::behavior { return {[](const note&) {}}; }) {}
  void on_exit() override { address_ = nullptr; }
  void know(caf::actor address) { address_ = std::move(address); }

private:
  caf::actor address_;
};

} // namespace

TEST_CASE("one hundred thousand lives and deaths of published actors leave nothing") {
  small_world w;
  w.net->set_path(w.here, w.here, {10ms, 0ms});
  auto a = w.host(), b = w.host();
  auto cycle = [&](int count) {
    for (int i = 0; i < count; ++i) {
      caf::actor local;
      {
        acting_as as{a};
        auto made = w.system->spawn<self_aware>(std::ref(w));
        local = caf::actor_cast<caf::actor>(made);
      }
      auto address = w.address(local);
      static_cast<self_aware*>(caf::actor_cast<caf::abstract_actor*>(local))->know(address);
      w.does(b, [address](puppet& self) {
        self.send(address, note{1});
        self.monitor(address);
        self.request(address, 3600s, ask{1}).then([](const note&) {}, [](caf::error&) {});
        self.delayed_send(&self, 20ms, note{2});
        self.become(caf::behavior{[&self](const note&) { self.quit(); }});
      });
      acting_as as{a};
      caf::anon_send_exit(address, caf::exit_reason::kill);
      if (i % 100 == 99) w.run();
    }
    w.run();
    w.history.clear();
    w.history.shrink_to_fit();
  };
  cycle(10'000);
  auto before = allocated();
  cycle(90'000);
  CHECK(puppet::live() == 0);
  CHECK(port::live() == 0);
  CHECK(w.clock.live_actors() == 0);
  CHECK(w.clock.pending_events() == 0);
  // For each actor that ever lived, two vectors keep its host and the head of its timers. These are
  // 8 bytes, in vectors that may be half empty; a cycle has two actors.
  CHECK(allocated() - before < 2 * 90'000 * 20);
}

TEST_CASE("ten thousand actors of one host die at once") {
  small_world w;
  auto a = w.host(), b = w.host();
  std::vector<caf::actor> addresses;
  for (int i = 0; i < 10'000; ++i)
    addresses.push_back(w.spawn_public(a, [](puppet& self) -> caf::behavior {
      self.delayed_send(&self, 1h, note{1});
      return {[](const note&) {}};
    }));
  int downs = 0;
  w.does(b, [&](puppet& self) {
    self.on_down = [&](const caf::down_msg&) { ++downs; };
    for (auto& address : addresses) self.monitor(address);
  });
  w.clock.at(1s, [&] { w.net->kill(a, kill_scope::process); });
  CHECK(w.run() == 1s);
  CHECK(downs == 10'000);
  CHECK(w.net->live_actors(a) == 0);
  CHECK(puppet::live() == 1);
  addresses.clear();
  CHECK(port::live() == 0);
}

TEST_CASE("a host that restarts one thousand times leaves nothing of its past lives") {
  small_world w;
  auto a = w.host(), b = w.host();
  std::vector<received> got;
  auto sink = w.collector(b, got);
  auto live = [&](int times) {
    for (int i = 0; i < times; ++i) {
      auto address = w.spawn_public(a, [sink](puppet& self) -> caf::behavior {
        self.send(sink, bulk{1, std::string(100'000, 'x')});
        self.send(sink, note{2});
        self.delayed_send(&self, 1h, note{3});
        return {[](const note&) {}};
      });
      w.clock.run(w.now() + 50ms);
      w.net->kill(a, i % 2 == 0 ? kill_scope::process : kill_scope::machine);
      w.clock.run(w.now() + 10s);
      a = w.restart(a);
    }
    w.history.clear();
    w.history.shrink_to_fit();
  };
  live(100);
  got.reserve(10'000);
  auto before = allocated();
  live(900);
  CHECK(w.net->incarnation(a) == 1000);
  CHECK(got.size() == 1000); // the notes; no bulk was complete
  CHECK(puppet::live() == 1);
  CHECK(port::live() == 1);
  CHECK(w.net->active_flows() == 0);
  CHECK(w.net->orphaned_flows() == 0);
  CHECK(allocated() - before < 900 * 1000);
}

TEST_CASE("a long-lived actor does not remember observers that died") {
  small_world w;
  auto a = w.host(), b = w.host();
  auto watched = w.spawn_public(a, [](puppet&) -> caf::behavior { return {[](const note&) {}}; });
  auto live = [&](int times) {
    for (int i = 0; i < times; ++i) {
      w.does(b, [&](puppet& self) {
        for (int n = 0; n < 50; ++n) self.monitor(watched);
      });
      w.clock.run(w.now() + 50ms);
      w.net->kill(b, i % 2 == 0 ? kill_scope::process : kill_scope::machine);
      w.clock.run(w.now() + 10s);
      b = w.restart(b);
    }
    w.history.clear();
    w.history.shrink_to_fit();
  };
  live(100);
  auto before = allocated();
  live(2000);
  // A watch takes more than a hundred bytes, and 100,000 were begun. Besides, each life of a host
  // is known forever.
  CHECK(allocated() - before < 2000 * 1000);
  // A live observer is told once.
  int downs = 0;
  w.does(b, [&](puppet& self) {
    self.on_down = [&](const caf::down_msg&) { ++downs; };
    self.monitor(watched);
  });
  w.clock.run(w.now() + 1s);
  w.net->kill(a, kill_scope::process);
  w.clock.run(w.now() + 10s);
  CHECK(downs == 1);
}

TEST_CASE("a world in virtual time ends cleanly with everything in flight") {
  for (auto stop_at : {0ms, 1ms, 15ms, 60ms, 400ms}) {
    {
      small_world w;
      w.net->set_path(w.here, w.here, {20ms, 10ms});
      std::vector<host_index> hosts;
      std::vector<caf::actor> addresses;
      for (int i = 0; i < 20; ++i) {
        hosts.push_back(w.host());
        addresses.push_back(w.spawn_public(hosts.back(), [](puppet& self) -> caf::behavior {
          return {[&self](const ask&) { return self.make_response_promise<note>(); },
                  [](const intro&) {},
                  [&self](const note& x) {
                    self.send(caf::actor_cast<caf::actor>(self.current_sender()), note{x.n + 1});
                  }};
        }));
      }
      auto raw = w.spawn(hosts[0], [](puppet&) -> caf::behavior { return {[](const note&) {}}; });
      for (auto h : hosts)
        w.does(h, [addresses](puppet& self) {
          for (auto& other : addresses) {
            self.request(other, 3600s, ask{1}).then([](const note&) {}, [](caf::error&) {});
            self.send(other, bulk{1, std::string(50'000, 'x')});
            self.send(other, intro{other});
            self.send(other, note{1});
            self.monitor(other);
          }
          self.become(
              caf::behavior{[&self](const note&) { self.send(&self, note{1}), self.quit(); }});
          self.delayed_send(&self, 30ms, note{1});
        });
      w.clock.at(300ms, [&] { w.net->kill(hosts[3], kill_scope::machine); });
      w.clock.run(stop_at);
      CHECK(w.clock.pending_events() > 0);
    }
  }
}

TEST_CASE("a world on the wall clock ends cleanly with everything in flight") {
  for (auto stop_at : {1ms, 30ms}) {
    small_world w{time_mode::wall_clock, 1, 3};
    w.net->set_path(w.here, w.here, {5ms, 2ms});
    std::vector<host_index> hosts;
    std::vector<caf::actor> addresses;
    for (int i = 0; i < 10; ++i) {
      hosts.push_back(w.host());
      addresses.push_back(w.spawn_public(hosts.back(), [](puppet& self) -> caf::behavior {
        return {[](const bulk&) {},
                [&self](const note& x) {
                  self.send(caf::actor_cast<caf::actor>(self.current_sender()), note{x.n + 1});
                }};
      }));
    }
    for (auto h : hosts)
      w.does(h, [addresses](puppet& self) {
        for (auto& other : addresses) {
          self.send(other, bulk{1, std::string(50'000, 'x')});
          self.send(other, note{1});
          self.monitor(other);
        }
        self.become(caf::behavior{[](const note&) {}});
      });
    w.clock.run(stop_at);
    w.net->kill(hosts[3], kill_scope::process);
    w.clock.run(w.now() + 5ms);
  }
}

TEST_CASE("an actor that was killed before it was published has no address") {
  small_world w;
  auto a = w.host();
  auto local = w.spawn(a, [](puppet&) -> caf::behavior { return {[](const note&) {}}; });
  w.net->kill(a, kill_scope::process);
  w.run();
  CHECK_FALSE(w.address(local));
}
