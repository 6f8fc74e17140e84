#include "kernels/base/rng.hpp"
#include "netem/transport.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

using namespace shoal;
using namespace shoal::netem;
using namespace std::chrono_literals;

namespace {

std::vector<finished_transfer> run(transport& net) {
  std::vector<finished_transfer> done;
  while (const auto next = net.next_event()) net.advance(*next, done);
  return done;
}

double seconds_of(transport& net, transfer_request what, duration at = {}) {
  net.start(what, at);
  const auto done = run(net);
  REQUIRE(done.size() == 1);
  return to_seconds(done.front().at - at);
}

} // namespace

TEST_CASE("tcp: one flow on a fast link has set-up and then windows of 10, 20, 40 ... segments") {
  // 10 + 20 + 40 + 80 segments fit into the first four round trips. The fifth window carries the
  // rest.
  transport net(transfer_model::tcp);
  const link_id path[] = {net.add_link(1e10)};
  transfer_request what;
  what.path = path;
  what.delay = 50ms;
  what.round_trip = 100ms;
  what.bytes = 200 * 1448;
  // The rest is a part of the fifth window, which has 160 segments spread over its round trip.
  const double rest = 50.0 / 160;
  CHECK(seconds_of(net, what) == doctest::Approx(0.1 + 0.4 + 0.1 * rest).epsilon(1e-6));
}

TEST_CASE(
    "tcp: a connection in use needs no set-up and keeps its window; an idle one starts again") {
  transport net(transfer_model::tcp);
  const link_id path[] = {net.add_link(1e8)};
  transfer_request what;
  what.path = path;
  what.round_trip = 80ms;
  what.delay = 40ms;
  what.bytes = 2'000'000;
  net.start(what, {});
  auto done = run(net);
  REQUIRE(done.size() == 1);
  const double first = to_seconds(done[0].at);
  what.connection = done[0].connection;
  const double second = seconds_of(net, what, done[0].at);
  CHECK(second < first - 0.08);
  CHECK(second == doctest::Approx(2e6 * 8 / 1e8).epsilon(0.05));
  transport idle(transfer_model::tcp);
  const link_id same[] = {idle.add_link(1e8)};
  what.path = same;
  const double later = seconds_of(idle, what, done[0].at + 10s);
  CHECK(later == doctest::Approx(first - 0.08).epsilon(0.1));
}

TEST_CASE("tcp: many short transfers on one connection grow its window like one long transfer") {
  const auto time_of = [](int pieces) {
    transport net(transfer_model::tcp);
    const link_id path[] = {net.add_link(1e9)};
    transfer_request what;
    what.path = path;
    what.round_trip = 100ms;
    what.delay = 50ms;
    what.bytes = 4'000'000 / static_cast<std::uint64_t>(pieces);
    std::vector<finished_transfer> done;
    duration now{};
    for (int i = 0; i < pieces; ++i) {
      done.clear();
      net.start(what, now);
      while (const auto next = net.next_event()) net.advance(*next, done);
      now = done.front().at;
      what.connection = done.front().connection;
    }
    return to_seconds(now);
  };
  CHECK(time_of(400) == doctest::Approx(time_of(1)).epsilon(0.2));
}

TEST_CASE("tcp: a fast path with a long delay is limited by the largest window") {
  tcp_options tcp;
  tcp.max_window = 1e6;
  transport net(transfer_model::tcp, tcp);
  const link_id path[] = {net.add_link(1e10)};
  std::vector<rate_change> rates;
  net.on_rate([&](const rate_change& change) { rates.push_back(change); });
  transfer_request what;
  what.path = path;
  what.delay = 100ms;
  what.round_trip = 200ms;
  what.bytes = 100'000'000;
  const double seconds = seconds_of(net, what);
  CHECK(seconds == doctest::Approx(100e6 / (1e6 / 0.2)).epsilon(0.1));
  REQUIRE(!rates.empty());
  CHECK(rates.front().why == rate_limit::connecting);
  CHECK(rates.back().why == rate_limit::max_window);
  CHECK(rates.back().bits_per_second == doctest::Approx(4e7));
}

TEST_CASE("loss caps a long transfer by the named formula") {
  tcp_options reno;
  reno.control = congestion_control::reno;
  // Padhye et al., eq. (30) with b = 2, p = 1 %, RTT 100 ms, T0 = RTT + 200 ms.
  const double p = 0.01, rtt = 0.1, t0 = 0.3;
  const double expected =
      1448 / (rtt * std::sqrt(4 * p / 3) +
              t0 * std::min(1.0, 3 * std::sqrt(6 * p / 8)) * p * (1 + 32 * p * p));
  CHECK(loss_cap(reno, p, 100ms) == doctest::Approx(8 * expected));
  CHECK(std::isinf(loss_cap(reno, 0, 100ms)));
  CHECK(loss_cap(tcp_options{}, p, 100ms) >= loss_cap(reno, p, 100ms));
  transport net(transfer_model::tcp, reno);
  const link_id path[] = {net.add_link(1e9)};
  transfer_request what;
  what.path = path;
  what.delay = 50ms;
  what.round_trip = 100ms;
  what.loss_events = p;
  what.bytes = 20'000'000;
  CHECK(seconds_of(net, what) == doctest::Approx(20e6 / expected).epsilon(0.05));
}

TEST_CASE("in every model a path's cap holds and transfers of zero bytes end") {
  for (const auto model : {transfer_model::max_min, transfer_model::lv08, transfer_model::tcp}) {
    transport net(model);
    const link_id path[] = {net.add_link(1e9)};
    transfer_request what;
    what.path = path;
    what.cap = 1e6;
    what.bytes = 1'000'000;
    CHECK(seconds_of(net, what) == doctest::Approx(8).epsilon(0.01));
    what.bytes = 0;
    net.start(what, 100s);
    CHECK(run(net).size() == 1);
    CHECK(net.active() == 0);
  }
}

TEST_CASE("under random transfers of every model each ends once and not too early, and cancelling "
          "leaves nothing") {
  for (const auto model : {transfer_model::max_min, transfer_model::lv08, transfer_model::tcp}) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      auto draws = stream(seed, "transport");
      transport net(model);
      std::vector<link_id> up, down;
      const std::size_t hosts = 2 + draws.below(12);
      for (std::size_t i = 0; i < hosts; ++i) {
        up.push_back(net.add_link(draws.uniform(1e6, 1e8)));
        down.push_back(net.add_link(draws.uniform(1e6, 1e8)));
      }
      struct begun {
        duration at;
        double fastest;
        transport::transfer_id id;
        bool ended = false, cancelled = false;
      };
      std::vector<begun> all;
      std::vector<finished_transfer> done;
      duration now{};
      std::size_t expected = 0;
      for (int i = 0; i < 200; ++i) {
        now += from_seconds(draws.exponential(0.02));
        net.advance(now, done);
        for (const auto& f : done) {
          REQUIRE(!all[f.tag].ended);
          all[f.tag].ended = true;
          CHECK(to_seconds(f.at - all[f.tag].at) >= all[f.tag].fastest * (1 - 1e-9));
        }
        done.clear();
        if (!all.empty() && draws.uniform() < 0.1) {
          auto& victim = all[draws.below(all.size())];
          if (!victim.ended && !victim.cancelled) {
            net.cancel(victim.id, now);
            victim.cancelled = true;
            --expected;
          }
          continue;
        }
        const auto a = draws.below(hosts), b = draws.below(hosts);
        const link_id path[] = {up[a], down[b]};
        const link_id back[] = {up[b], down[a]};
        transfer_request what;
        what.path = path;
        if (a != b) what.way_back = back;
        what.delay = from_seconds(draws.uniform(0.001, 0.1));
        what.round_trip = 2 * what.delay;
        what.bytes = 1000 + draws.below(1'000'000);
        what.tag = all.size();
        all.push_back({now,
                       static_cast<double>(what.bytes) * 8 /
                           std::min(net.capacity(up[a]), net.capacity(down[b])),
                       net.start(what, now)});
        ++expected;
      }
      for (const auto& f : run(net)) all[f.tag].ended = true;
      std::size_t ended = 0;
      for (const auto& t : all) {
        CHECK(!(t.ended && t.cancelled));
        ended += t.ended ? 1 : 0;
      }
      CHECK(ended == expected);
      CHECK(net.active() == 0);
    }
  }
}

TEST_CASE("a stopped transfer does not move and then continues; with TCP it starts slowly again") {
  for (auto model : {transfer_model::max_min, transfer_model::lv08, transfer_model::tcp}) {
    CAPTURE(static_cast<int>(model));
    const auto run = [&](duration stop, duration go_on) {
      transport t(model);
      const auto link = t.add_link(100e6);
      transfer_request what;
      what.path = {&link, 1};
      what.bytes = 10'000'000;
      what.delay = 20ms;
      what.round_trip = 40ms;
      const auto id = t.start(what, 0ms);
      std::vector<finished_transfer> done;
      if (stop > duration{}) {
        t.advance(stop, done);
        t.stop(id, stop);
        t.advance(go_on, done);
        CHECK(done.empty());
        t.go_on(id, what, go_on);
      }
      t.advance(60s, done);
      REQUIRE(done.size() == 1);
      CHECK(t.active() == 0);
      return done[0].at;
    };
    const auto whole = run({}, {}), paused = run(500ms, 2500ms), at_once = run(1ms, 2001ms);
    if (model == transfer_model::tcp) {
      CHECK(paused > whole + 2s);
      CHECK(paused < whole + 3s);
    } else {
      CHECK(std::abs((paused - whole - 2s).count()) <= 2);
    }
    CHECK(at_once >= whole + 1900ms); // stopped while it was connecting
    CHECK(at_once <= whole + 2100ms);
  }
}

TEST_CASE("a change of the path affects a running transfer") {
  transport t(transfer_model::tcp);
  const auto link = t.add_link(100e6);
  transfer_request what;
  what.path = {&link, 1};
  what.bytes = 10'000'000;
  what.delay = 20ms;
  what.round_trip = 40ms;
  const auto end_with = [&](path_now way) {
    transport here(transfer_model::tcp);
    const auto l = here.add_link(100e6);
    auto request = what;
    request.path = {&l, 1};
    const auto id = here.start(request, 0ms);
    std::vector<finished_transfer> done;
    here.advance(200ms, done);
    here.change(id, way, 200ms);
    here.advance(600s, done);
    REQUIRE(done.size() == 1);
    return done[0].at;
  };
  path_now way = what;
  const auto same = end_with(way);
  way.cap = 10e6;
  CHECK(end_with(way) > same + 5s);
  way = what;
  way.loss_events = 0.02;
  CHECK(end_with(way) > same + 1s);
  way = what;
  way.delay = 200ms;
  way.round_trip = 400ms;
  CHECK(end_with(way) > same);
}

TEST_CASE("tcp: many equal round trips computed at once equal single ones") {
  for (const auto control : {congestion_control::cubic, congestion_control::reno})
    for (const double rate : {1e5, 1e6, 4e6, 2e7})
      for (const double window : {14480.0, 60000.0, 2e6})
        for (const bool avoiding : {false, true})
          for (const std::int64_t count : {1, 2, 7, 50, 1000, 12345}) {
            tcp_options options;
            options.control = control;
            tcp_window one;
            one.connected = true;
            one.avoiding = avoiding;
            one.window = window;
            one.before_loss = window / 0.7;
            one.loss_at = 1s;
            round_trip_seen seen;
            seen.round_trip = 40ms;
            seen.rate = rate;
            seen.sharers = 5;
            seen.queue_bytes = 30000;
            auto together = one;
            next_round_trips(options, together, seen, 1s, count);
            for (std::int64_t i = 1; i <= count; ++i) {
              seen.now = 1s + i * 40ms;
              next_round_trip(options, one, seen);
            }
            CAPTURE(rate);
            CAPTURE(window);
            CAPTURE(avoiding);
            CAPTURE(count);
            CHECK(together.window == doctest::Approx(one.window).epsilon(1e-9));
            CHECK(together.before_loss == doctest::Approx(one.before_loss).epsilon(1e-9));
            CHECK(together.avoiding == one.avoiding);
            CHECK(together.loss_at == one.loss_at);
          }
}

TEST_CASE(
    "tcp: a window that a link keeps large enough limits nothing until the link has room again") {
  // Two flows share 8 Mbit/s at 50 ms: each has 25 kB in a round trip, and the queue has 75 kB. A
  // share of 0.7 of both is more than 25 kB.
  transport net(transfer_model::tcp);
  const link_id path[] = {net.add_link(8e6)};
  transfer_request what;
  what.path = path;
  what.delay = 25ms;
  what.round_trip = 50ms;
  what.connection.connected = true;
  what.bytes = 20'000'000;
  what.tag = 1;
  net.start(what, {});
  what.bytes = 5'000'000;
  what.tag = 2;
  net.start(what, {});
  std::size_t events = 0;
  std::vector<finished_transfer> done;
  while (const auto next = net.next_event()) {
    net.advance(*next, done);
    ++events;
  }
  REQUIRE(done.size() == 2);
  CHECK(to_seconds(done[0].at) == doctest::Approx(10).epsilon(0.02));
  // All 25 MB pass one link, with the loss of slow start.
  CHECK(to_seconds(done[1].at) == doctest::Approx(25).epsilon(0.02));
  CHECK(events < 150); // the transfers take about 500 round trips
}

TEST_CASE("a queue that pushes back loses nothing, and its flows stay at the line's rate") {
  transport net(transfer_model::tcp);
  const link_id own = net.add_link(1e7, {0s, 0, true});
  const link_id far = net.add_link(1e9);
  const link_id path[] = {own, far};
  std::vector<rate_change> rates;
  net.on_rate([&](const rate_change& change) { rates.push_back(change); });
  transfer_request what;
  what.path = path;
  what.delay = 50ms;
  what.round_trip = 100ms;
  what.bytes = 20'000'000;
  net.start(what, {});
  std::vector<finished_transfer> done;
  bool full = false;
  while (const auto next = net.next_event()) {
    net.advance(*next, done);
    CHECK(net.queueing_delay(own, *next) == 0s);
    CHECK(net.queueing_delay(far, *next) == 0s);
  }
  for (const auto& change : rates) {
    if (full) CHECK(change.bits_per_second == 1e7);
    full = full || change.bits_per_second == 1e7;
  }
  CHECK(full);
  REQUIRE(done.size() == 1);
  // Set-up, four round trips of slow start, then the line's rate.
  CHECK(to_seconds(done[0].at) == doctest::Approx(16.4).epsilon(0.02));
  // The window is at most twice what is in flight, so that the next link is not flooded.
  CHECK(done[0].connection.window <= 2 * 1e7 / 8 * 0.1 * 1.01);
}

TEST_CASE("packets wait behind the windows of steady flows, up to the length of the queue") {
  for (const double packets : {20.0, 100.0, 400.0}) {
    transport net(transfer_model::tcp);
    const link_id path[] = {net.add_link(1e7, {0s, packets})};
    transfer_request what;
    what.path = path;
    what.delay = 20ms;
    what.round_trip = 40ms;
    what.bytes = 60'000'000;
    CHECK(net.queueing_delay(path[0], 0s) == 0s);
    net.start(what, 0s);
    std::vector<finished_transfer> done;
    const auto longest = 8 * 1500 * packets / 1e7;
    double most = 0, sum = 0;
    for (int second = 20; second < 40; ++second) {
      net.advance(std::chrono::seconds(second), done);
      const auto wait = to_seconds(net.queueing_delay(path[0], std::chrono::seconds(second)));
      most = std::max(most, wait);
      sum += wait / 20;
    }
    CAPTURE(packets);
    CHECK(most <= longest * (1 + 1e-9));
    // A short queue empties at each loss; a long one never does.
    CHECK(sum > longest * (packets > 50 ? 0.6 : 0.2));
    REQUIRE(done.empty());
  }
  transport ideal(transfer_model::max_min);
  const link_id path[] = {ideal.add_link(1e7)};
  CHECK(ideal.queueing_delay(path[0], 1s) == 0s);
}

TEST_CASE("CUBIC leaves slow start without a loss once the queue delays it") {
  tcp_options options;
  tcp_window window;
  begin_transfer(options, window, 0s, 80ms);
  round_trip_seen seen;
  seen.round_trip = 80ms;
  seen.rate = 1e7;
  seen.queue_bytes = 1.5e6;
  bool lost = false;
  duration left{};
  for (int trip = 1; trip <= 50; ++trip) {
    seen.now = trip * 80ms;
    seen.window_limited = window.window < 1e5; // 1e7 / 8 * 0.08
    seen.queue_delay = from_seconds(std::max(0.0, window.window - 1e5) * 8 / 1e7);
    const bool before = window.avoiding;
    lost = lost || next_round_trip(options, window, seen);
    if (!before && window.avoiding) left = seen.now;
  }
  CHECK(left == 4 * 80ms); // windows of 14, 29, 58 and 116 kB
  CHECK_FALSE(lost);
  CHECK(window.window < 4e5);
}

TEST_CASE(
    "an idle connection keeps its window only if its host does not start slowly after idling") {
  for (const bool slow_start : {true, false}) {
    tcp_options options;
    options.slow_start_after_idle = slow_start;
    tcp_window window;
    begin_transfer(options, window, 0s, 80ms);
    CHECK(window.window == 10 * 1448);
    window.window = 3e5;
    window.used_until = 1s;
    begin_transfer(options, window, 1s + 279ms, 80ms); // the timeout is 280 ms
    CHECK(window.window == 3e5);
    begin_transfer(options, window, 1s + 281ms, 80ms);
    CHECK(window.window == (slow_start ? 10 * 1448 : 3e5));
  }
}
