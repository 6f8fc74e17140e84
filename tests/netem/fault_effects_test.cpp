// docs/failures.md: the effect of each fault on messages in flight, measured in virtual time and on
// the wall clock.
#include "tests/netem/support/small_world.hpp"

#include <caf/send.hpp>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <atomic>
#include <functional>

using namespace shoal;
using namespace shoal::netem;
using namespace shoal::netem::testing;
using namespace std::chrono_literals;

namespace {

constexpr duration detection = 400ms;

/// Runs `body` in both worlds. The body builds, and returns the checks to make after 2 s. `is`
/// compares times: exactly in virtual time; on the wall clock, not before and not long after.
struct in_world {
  small_world w;
  explicit in_world(time_mode mode) : w(mode, 1, 2, detection) {}
  void run(duration limit = 1500ms) {
    w.clock.run(limit);
    w.clock.settle();
  }
  void is(duration actual, duration expected) const {
    CAPTURE(to_string(actual));
    CAPTURE(to_string(expected));
    if (w.clock.mode() == time_mode::virtual_time) {
      CHECK(actual == expected);
    } else {
      CHECK(actual >= expected - 1ms);
      CHECK(actual < expected + 1s);
    }
  }
};

void both_worlds(const std::function<void(in_world&)>& body) {
  for (auto mode : {time_mode::virtual_time, time_mode::wall_clock}) {
    CAPTURE(mode == time_mode::virtual_time);
    in_world in(mode);
    body(in);
  }
}

void watch(small_world& w, host_index on, const caf::actor& whom, std::vector<received>& downs,
           std::vector<caf::error>& why) {
  w.does(on, [&, whom](puppet& self) {
    self.on_down = [&](const caf::down_msg& down) {
      downs.push_back({w.now(), 0});
      why.push_back(down.reason);
    };
    self.monitor(whom);
  });
}

std::string text(const std::vector<received>& of) {
  std::string out;
  for (const auto& r : of) out += fmt::format("{} at {}, ", r.n, to_string(r.at));
  return out;
}

std::vector<std::uint32_t> numbers(const std::vector<received>& of) {
  std::vector<std::uint32_t> out;
  for (const auto& r : of) out.push_back(r.n);
  return out;
}

} // namespace

TEST_CASE("a throttle to half the rate doubles a transfer, and the second half of a running one") {
  both_worlds([](in_world& in) {
    auto& w = in.w;
    auto a = w.host(8e6), b = w.host(8e9), c = w.host(8e6);
    std::vector<received> got, other;
    auto sink = w.collector(b, got), sink2 = w.collector(b, other);
    w.net->set_rates(w.net->machine_of(a), {4e6}, {4e6});
    CHECK(w.net->rate_up(a).bits_per_second == 8e6); // the owner's rate
    w.does(a, [=](puppet& self) { self.send(sink, bulk{1, std::string(200'000, 'x')}); });
    w.does(c, [=](puppet& self) { self.send(sink2, bulk{2, std::string(200'000, 'x')}); });
    duration half{};
    w.clock.at(100ms, [&] {
      half = w.now();
      w.net->set_rates(w.net->machine_of(c), {4e6}, {4e6});
    });
    in.run();
    REQUIRE(got.size() == 1);
    REQUIRE(other.size() == 1);
    const auto bytes =
        w.clock.mode() == time_mode::virtual_time ? w.wire_bytes_of("bulk") : 205'000;
    const auto whole = at_rate(bytes, 8e6);
    if (w.clock.mode() == time_mode::virtual_time) {
      in.is(got[0].at, at_rate(bytes, 4e6));
      in.is(other[0].at, 100ms + 2 * (whole - 100ms));
    } else {
      in.is(got[0].at, 400ms);
      in.is(other[0].at, 300ms);
    }
  });
}

TEST_CASE("a slower line delays later messages in the given direction") {
  both_worlds([](in_world& in) {
    auto& w = in.w;
    w.net->set_path(w.here, w.here, {10ms, 0ms});
    auto a = w.host(8e12), b = w.host(8e12);
    std::vector<received> at_a, at_b;
    auto sink_a = w.collector(a, at_a), sink_b = w.collector(b, at_b);
    w.clock.at(100ms, [&] { w.net->set_line(w.net->machine_of(a), {.delay = 200ms}, {}); });
    w.clock.at(400ms, [&] { w.net->set_line(w.net->machine_of(a), {}, {}); });
    for (auto when : {0ms, 150ms, 500ms}) {
      w.does_at(when, a, [=](puppet& self) { self.send(sink_b, note{1}); });
      w.does_at(when, b, [=](puppet& self) { self.send(sink_a, note{2}); });
    }
    in.run();
    REQUIRE(at_b.size() == 3);
    REQUIRE(at_a.size() == 3);
    in.is(at_b[0].at, 10ms + at_rate(0, 1));
    in.is(at_b[1].at, 360ms);
    in.is(at_b[2].at, 510ms);
    in.is(at_a[1].at, 160ms);
  });
}

TEST_CASE("a one-way cut drops messages of one direction") {
  both_worlds([](in_world& in) {
    auto& w = in.w;
    w.net->set_path(w.here, w.here, {10ms, 0ms});
    auto a = w.host(8e12), b = w.host(8e12);
    std::vector<received> at_a, at_b;
    auto sink_a = w.collector(a, at_a), sink_b = w.collector(b, at_b);
    w.net->add_cut(cut::between({w.net->machine_of(a)}, traffic_direction::from));
    w.does(a, [=](puppet& self) {
      self.send(sink_b, note{1});
      self.send(sink_b, bulk{2, std::string(10'000, 'x')});
    });
    w.does(b, [=](puppet& self) {
      self.send(sink_a, note{3});
      self.send(sink_a, bulk{4, std::string(10'000, 'x')});
    });
    in.run();
    CHECK(at_b.empty());
    CHECK(numbers(at_a) == std::vector<std::uint32_t>{3, 4});
    CHECK(w.net->given_up() == 2);
    CHECK(w.net->active_flows() == 0);
    CHECK(w.net->orphaned_flows() == 0);
  });
}

TEST_CASE("messages that wait at a cut which heals in time arrive late and in order") {
  both_worlds([](in_world& in) {
    auto& w = in.w;
    w.net->set_path(w.here, w.here, {10ms, 0ms});
    auto a = w.host(8e6), b = w.host(8e6);
    std::vector<received> small, big;
    auto sink = w.collector(b, small), big_sink = w.collector(b, big);
    std::uint64_t number = 0;
    w.does(a, [=](puppet& self) { self.send(big_sink, bulk{9, std::string(200'000, 'x')}); });
    w.clock.at(100ms, [&] {
      number = w.net->add_cut(cut::isolating({w.net->machine_of(b)}, traffic_direction::both));
    });
    // One actor sends all three messages. On the wall clock, several senders would have no fixed
    // order.
    w.does_at(150ms, a, [=](puppet& self) {
      for (std::uint32_t n = 1; n <= 3; ++n) self.send(sink, note{n});
    });
    w.clock.at(400ms, [&] { w.net->heal(number); });
    w.does_at(410ms, a, [=](puppet& self) { self.send(sink, note{4}); });
    std::vector<received> downs;
    std::vector<caf::error> why;
    watch(w, a, sink, downs, why);
    in.run();
    CAPTURE(text(small));
    CHECK(numbers(small) == std::vector<std::uint32_t>{1, 2, 3, 4});
    CHECK(small[0].at >= 400ms);
    REQUIRE(big.size() == 1);
    if (w.clock.mode() == time_mode::virtual_time)
      CHECK(big[0].at == at_rate(w.wire_bytes_of("bulk"), 8e6) + 300ms + 10ms);
    else
      in.is(big[0].at, 510ms);
    CHECK(downs.empty());
    CHECK(w.net->given_up() == 0);
  });
}

TEST_CASE("a lasting cut is given up after the detection time and later messages get through") {
  both_worlds([](in_world& in) {
    auto& w = in.w;
    w.net->set_path(w.here, w.here, {10ms, 0ms});
    auto a = w.host(8e6), b = w.host(8e6);
    std::vector<received> got, downs, late_downs;
    std::vector<caf::error> why, late_why;
    auto sink = w.collector(b, got);
    std::uint64_t number = 0;
    w.clock.at(100ms, [&] {
      number = w.net->add_cut(cut::between({w.net->machine_of(b)}, traffic_direction::both));
    });
    watch(w, a, sink, downs, why);
    w.does_at(150ms, a, [=](puppet& self) { self.send(sink, note{1}); });
    w.does_at(160ms, a, [=](puppet& self) { self.send(sink, bulk{2, std::string(50'000, 'x')}); });
    w.does_at(170ms, a, [=](puppet& self) { self.send(sink, bulk{3, std::string(50'000, 'x')}); });
    w.clock.at(200ms, [&] { watch(w, a, sink, late_downs, late_why); });
    w.clock.at(700ms, [&] { w.net->heal(number); });
    w.does_at(750ms, a, [=](puppet& self) { self.send(sink, note{4}); });
    in.run();
    CHECK(numbers(got) == std::vector<std::uint32_t>{4});
    CHECK(w.net->given_up() == 3);
    REQUIRE(downs.size() == 1);
    in.is(downs[0].at, 500ms);
    CHECK(why[0] == caf::exit_reason::unreachable);
    REQUIRE(late_downs.size() == 1);
    in.is(late_downs[0].at, 500ms);
    CHECK(w.net->active_flows() == 0);
  });
}

TEST_CASE("two cuts of one pair end with the later one") {
  small_world w;
  w.net->set_path(w.here, w.here, {10ms, 0ms});
  auto a = w.host(8e6), b = w.host(8e6);
  std::vector<received> got;
  auto sink = w.collector(b, got);
  std::uint64_t first = 0, second = 0;
  w.clock.at(1s, [&] {
    first = w.net->add_cut(cut::between({w.net->machine_of(a)}, traffic_direction::both));
    second = w.net->add_cut(cut::isolating({w.net->machine_of(b)}, traffic_direction::to));
  });
  w.does_at(2s, a, [=](puppet& self) { self.send(sink, note{1}); });
  w.clock.at(3s, [&] { w.net->heal(first); });
  w.clock.at(4s, [&] { w.net->heal(second); });
  w.run();
  REQUIRE(got.size() == 1);
  CHECK(got[0].at >= 4s);
}

TEST_CASE("a paused host answers late and takes an answer that came in time as timely") {
  both_worlds([](in_world& in) {
    auto& w = in.w;
    w.net->set_path(w.here, w.here, {40ms, 0ms});
    auto a = w.host(8e12), b = w.host(8e12);
    // Each actor has its own vector: on the wall clock, actors of one host run on several threads.
    std::vector<received> got, late, answers, others_answers, ticks;
    auto sink = w.collector(a, got), other = w.collector(b, ticks);
    std::atomic<int> timeouts{0};
    // Steps are 30 ms apart, so that a late thread on the wall clock does not change their order.
    // The question of the actor is answered during the pause, and its timeout has passed when the
    // host resumes.
    w.does_at(100ms, a, [&](puppet& self) {
      self.request(other, 200ms, ask{7})
          .then(
              [&](const note& x) {
                answers.push_back({w.now(), x.n});
              },
              [&](caf::error&) { ++timeouts; });
    });
    w.does(a, [&](puppet& self) {
      self.become(caf::behavior{[&](const note& x) { late.push_back({w.now(), x.n}); }});
      self.delayed_send(&self, 250ms, note{1});
      self.delayed_send(&self, 300ms, note{2});
    });
    duration paused{}, resumed{}; // on the wall clock, a little later than planned
    w.clock.at(130ms, [&] {
      CHECK(w.net->pause(a));
      paused = w.now();
    });
    w.does_at(150ms, b, [&](puppet& self) {
      self.request(sink, 1s, ask{5})
          .then(
              [&](const note& x) {
                others_answers.push_back({w.now(), x.n});
              },
              [&](caf::error&) { ++timeouts; });
    });
    w.clock.at(200ms, [&] { CHECK((got.empty() && late.empty())); });
    w.clock.at(450ms, [&] {
      CHECK(w.net->paused(a));
      resumed = w.now();
      CHECK(w.net->resume(a));
      CHECK_FALSE(w.net->resume(a));
    });
    in.run();
    CHECK(timeouts == 0);
    CHECK(numbers(got) == std::vector<std::uint32_t>{5});
    CHECK(numbers(late) == std::vector<std::uint32_t>{1, 2});
    for (const auto* all : {&got, &late})
      for (const auto& r : *all) in.is(r.at, 450ms);
    CHECK(numbers(answers) == std::vector<std::uint32_t>{7});
    REQUIRE(numbers(others_answers) == std::vector<std::uint32_t>{5});
    in.is(others_answers[0].at, 490ms);
    if (w.clock.mode() == time_mode::virtual_time) CHECK(resumed - paused == 320ms);
    in.is(w.net->paused_time(a), resumed - paused);
  });
}

TEST_CASE("observers of a host in a long pause are told and the host continues nevertheless") {
  both_worlds([](in_world& in) {
    auto& w = in.w;
    w.net->set_path(w.here, w.here, {10ms, 0ms});
    auto a = w.host(8e12), b = w.host(8e12);
    std::vector<received> got, downs;
    std::vector<caf::error> why;
    auto sink = w.collector(a, got);
    watch(w, b, sink, downs, why);
    w.clock.at(100ms, [&] { w.net->pause(a); });
    w.clock.at(800ms, [&] { w.net->resume(a); });
    w.does_at(900ms, b, [=](puppet& self) { self.send(sink, note{1}); });
    in.run();
    REQUIRE(downs.size() == 1);
    in.is(downs[0].at, 500ms);
    CHECK(why[0] == caf::exit_reason::unreachable);
    CHECK(numbers(got) == std::vector<std::uint32_t>{1});
  });
}

TEST_CASE("a host that is killed in a pause handles no more messages") {
  both_worlds([](in_world& in) {
    auto& w = in.w;
    auto a = w.host(8e12), b = w.host(8e12);
    std::vector<received> got;
    auto sink = w.collector(a, got);
    w.clock.at(100ms, [&] { w.net->pause(a); });
    w.does_at(150ms, b, [=](puppet& self) {
      self.send(sink, note{1});
      self.send(sink, bulk{2, std::string(10'000, 'x')});
    });
    bool resumed = false;
    w.clock.at(160ms, [&] { w.net->when_resumed(a, [&] { resumed = true; }); });
    w.clock.at(300ms, [&] { CHECK(w.net->kill(a, kill_scope::machine)); });
    in.run(600ms);
    CHECK(got.empty());
    CHECK_FALSE(resumed);
    CHECK(w.net->live_actors(a) == 0);
  });
}
