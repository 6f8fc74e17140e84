#include "netem/locked_section.hpp"
#include "tests/netem/support/small_world.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <thread>

using namespace shoal;
using namespace shoal::netem;
using namespace shoal::netem::testing;
using namespace std::chrono_literals;

namespace {

delivered_event numbered(std::uint64_t number) {
  delivered_event out;
  out.wire_bytes = number;
  return out;
}

/// True if another thread can take the lock.
bool is_free(reporting_mutex& mutex) {
  auto other = std::async(std::launch::async, [&] { std::lock_guard guard(mutex); });
  const bool out = other.wait_for(200ms) == std::future_status::ready;
  return out;
}

} // namespace

TEST_CASE(
    "reports are given after the lock is released and events and transfers keep their order") {
  std::vector<std::uint64_t> told;
  std::vector<bool> free;
  reporting_mutex* watched = nullptr;
  reporting_mutex mutex(
      [&](const delivered_event& what) {
        told.push_back(what.wire_bytes);
        free.push_back(is_free(*watched));
      },
      [&](const transfer_record& what) { told.push_back(100 + what.number); });
  watched = &mutex;
  {
    locked_section here(mutex);
    here.report(numbered(1));
    auto record = std::make_unique<transfer_record>();
    record->number = 1;
    here.report(std::move(record));
    here.report(numbered(2));
    CHECK(told.empty());
  }
  CHECK(told == std::vector<std::uint64_t>{1, 101, 2});
  CHECK(free == std::vector<bool>{true, true});
}

TEST_CASE("a callback may begin sections of its own and report in them") {
  std::vector<std::uint64_t> told;
  std::function<void(const delivered_event&)> callback;
  reporting_mutex mutex([&](const delivered_event& what) { callback(what); }, {});
  callback = [&](const delivered_event& what) {
    told.push_back(what.wire_bytes);
    if (what.wire_bytes >= 3) return;
    locked_section nested(mutex);
    nested.report(numbered(what.wire_bytes + 1));
  };
  {
    locked_section here(mutex);
    here.report(numbered(1));
    here.report(numbered(10));
  }
  CHECK(told == std::vector<std::uint64_t>{1, 2, 3, 10});
}

TEST_CASE("reports of several threads come one at a time in the order of their sections") {
  std::uint64_t next = 0;          // guarded by the mutex
  std::vector<std::uint64_t> told; // guarded by the turns only
  std::atomic<int> inside{0};
  int most = 0;
  reporting_mutex mutex(
      [&](const delivered_event& what) {
        most = std::max(most, ++inside);
        told.push_back(what.wire_bytes);
        --inside;
      },
      {});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 5000; ++i) {
        locked_section here(mutex);
        here.report(numbered(next++));
        if (i % 7 == 0) here.report(numbered(next++));
      }
    });
  for (auto& thread : threads) thread.join();
  REQUIRE(told.size() == next);
  CHECK(std::is_sorted(told.begin(), told.end()));
  CHECK(most == 1);
}

TEST_CASE("no report is given or in progress after reporting has stopped") {
  std::atomic<bool> stopped{false}, late{false};
  reporting_mutex mutex(
      [&](const delivered_event&) {
        std::this_thread::sleep_for(20us);
        if (stopped) late = true;
      },
      {});
  std::atomic<bool> over{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      while (!over) {
        locked_section here(mutex);
        here.report(numbered(1));
      }
    });
  std::this_thread::sleep_for(10ms);
  mutex.stop_reporting();
  stopped = true;
  std::this_thread::sleep_for(10ms);
  over = true;
  for (auto& thread : threads) thread.join();
  CHECK_FALSE(late);
}

TEST_CASE("without a callback nothing is reported") {
  reporting_mutex mutex({}, [](const transfer_record&) { CHECK(false); });
  CHECK_FALSE(mutex.reporting());
  locked_section here(mutex);
  here.report(numbered(1));
  here.report(std::make_unique<transfer_record>());
}

TEST_CASE("a callback of the fabric may ask the fabric and may even change it") {
  small_world w;
  std::vector<event_kind> told;
  std::vector<bool> alive;
  const auto a = w.host(), b = w.host();
  w.watch = [&](const delivered_event& event) {
    told.push_back(event.kind);
    alive.push_back(w.net->alive(event.to.host));
    if (event.kind == event_kind::host_killed && event.to.host == a)
      w.net->kill(b, kill_scope::process);
  };
  w.net->kill(a, kill_scope::process);
  CHECK(told == std::vector<event_kind>{event_kind::host_killed, event_kind::host_killed});
  CHECK(alive == std::vector<bool>{false, false});
  w.watch = [](const delivered_event&) {};
}

// -- lost messages are destroyed without the lock -------------------------------------------------

namespace {

/// A part of messages that are lost. Its destructor records whether another thread can query the
/// fabric.
struct end_witness {
  small_world* in = nullptr;
  std::atomic<int>* ended = nullptr;
  std::atomic<int>* under_lock = nullptr;

  ~end_witness() {
    auto asked = std::make_shared<std::promise<void>>();
    auto answer = asked->get_future();
    std::thread([asked, net = in->net] {
      net->paused_time(0);
      asked->set_value();
    }).detach();
    if (answer.wait_for(2s) != std::future_status::ready) ++*under_lock;
    ++*ended;
  }
};

struct lost_world : small_world {
  std::atomic<int> ended{0}, under_lock{0};
  host_index a = 0, b = 0;
  caf::actor sink;
  std::vector<received> got;

  lost_world() {
    net->set_path(here, here, {.delay = 10ms});
    a = host();
    b = host();
    sink = collector(b, got);
  }
  ~lost_world() { sink = nullptr; }

  std::shared_ptr<end_witness> witness() {
    return std::make_shared<end_witness>(this, &ended, &under_lock);
  }
  /// Sends a small message and three bulk messages from `a` to `b`.
  void send_some() {
    does(a, [this](puppet& self) {
      self.send(sink, bulk{0, {}, witness()}); // this message is small
      for (std::uint32_t n = 1; n <= 3; ++n)
        self.send(sink, bulk{n, std::string(1'000'000, 'x'), witness()});
      self.quit();
    });
  }
};

} // namespace

TEST_CASE("messages that a death loses are destroyed without the fabric's lock") {
  for (const bool sender_dies : {true, false}) {
    lost_world w;
    w.send_some();
    w.clock.at(100ms, [&] { w.net->kill(sender_dies ? w.a : w.b, kill_scope::machine); });
    w.run();
    CHECK(w.net->lost() == 3);
    CHECK(w.ended == 4);
    CHECK(w.under_lock == 0);
  }
}

TEST_CASE("messages on a connection that a cut ends are destroyed without the fabric's lock") {
  lost_world w;
  w.net->add_cut(cut::isolating({w.net->machine_of(w.b)}, traffic_direction::both));
  w.send_some();
  w.run();
  CHECK(w.net->given_up() == 4);
  CHECK(w.ended == 4);
  CHECK(w.under_lock == 0);
}

TEST_CASE("messages that wait at a cut when their receiver dies are destroyed without the fabric's "
          "lock") {
  lost_world w;
  w.net->add_cut(cut::isolating({w.net->machine_of(w.b)}, traffic_direction::both));
  w.send_some();
  w.clock.at(1s, [&] { w.net->kill(w.b, kill_scope::process); });
  w.run();
  CHECK(w.net->lost() == 4);
  CHECK(w.ended == 4);
  CHECK(w.under_lock == 0);
}
