// flow_network: closed forms first, then invariants under any churn of flows.
#include "kernels/base/rng.hpp"
#include "netem/flow_network.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <vector>

namespace {

using namespace shoal;
using namespace shoal::netem;
using namespace std::chrono_literals;

constexpr std::uint64_t MB = 1'000'000;
constexpr double Mbit = 1e6;

std::vector<finished_flow> run_until_idle(flow_network& net) {
  std::vector<finished_flow> out;
  while (const auto next = net.next_completion()) net.advance(*next, out);
  return out;
}

struct host {
  link_id up, down;
};

std::vector<host> star(flow_network& net, std::size_t n, double up, double down) {
  std::vector<host> hosts;
  for (std::size_t i = 0; i < n; ++i) {
    const auto u = net.add_link(up);
    const auto d = net.add_link(down);
    hosts.push_back({u, d});
  }
  return hosts;
}

flow_id send(flow_network& net, const host& from, const host& to, std::uint64_t bytes, duration now,
             std::uint64_t tag = 0, double cap = unlimited) {
  return net.start(std::array{from.up, to.down}, bytes, cap, now, tag);
}

} // namespace

TEST_CASE("one flow takes bytes over the narrowest link: t = 8 S / min(up, down)") {
  flow_network net;
  const auto h = star(net, 2, 100 * Mbit, 250 * Mbit);
  const auto f = send(net, h[0], h[1], 25 * MB, 0ns, 7);
  CHECK(net.next_completion() == 2s);
  CHECK(net.rate(f) == 100 * Mbit);
  CHECK(net.bottleneck(f) == h[0].up);
  CHECK(net.remaining_bytes(f, 500ms) == doctest::Approx(18.75e6).epsilon(1e-12));
  std::vector<finished_flow> out;
  net.advance(2s - 1ns, out);
  CHECK(out.empty());
  net.advance(2s, out);
  REQUIRE(out.size() == 1);
  CHECK(out[0].tag == 7);
  CHECK(out[0].at == 2s);
  CHECK_FALSE(net.alive(f));
  CHECK(net.next_completion() == std::nullopt);
}

TEST_CASE("a cap limits its flow: t = 8 S / cap") {
  flow_network net;
  const auto h = star(net, 2, 100 * Mbit, 100 * Mbit);
  const auto f = send(net, h[0], h[1], MB, 0ns, 0, 8 * Mbit);
  CHECK(net.next_completion() == 1s);
  CHECK(net.bottleneck(f) == std::nullopt);
}

TEST_CASE("completion is rounded up to a nanosecond") {
  flow_network net;
  const auto h = star(net, 2, 3, 3); // 8 bits at 3 bit/s: 2.666666666... s
  send(net, h[0], h[1], 1, 0ns);
  CHECK(net.next_completion() == 2'666'666'667ns);
}

TEST_CASE("two flows on a link have half each and the remaining flow has all of it") {
  // 10 MB and 20 MB share 80 Mbit/s: both go at 5 MB/s until 2 s; then 10 MB more go at 10 MB/s.
  flow_network net;
  const auto h = star(net, 3, 80 * Mbit, 1000 * Mbit);
  send(net, h[0], h[1], 10 * MB, 0ns, 1);
  send(net, h[0], h[2], 20 * MB, 0ns, 2);
  const auto out = run_until_idle(net);
  REQUIRE(out.size() == 2);
  CHECK(out[0].tag == 1);
  CHECK(out[0].at == 2s);
  CHECK(out[1].tag == 2);
  CHECK(out[1].at == 3s);
}

TEST_CASE("capacity that a capped flow leaves goes to the others: (C - cap) / (n - 1)") {
  flow_network net;
  const auto h = star(net, 4, 100 * Mbit, 1000 * Mbit);
  const auto slow = send(net, h[0], h[1], MB, 0ns, 0, 10 * Mbit);
  const auto a = send(net, h[0], h[2], MB, 0ns);
  const auto b = send(net, h[0], h[3], MB, 0ns, 0, 60 * Mbit);
  CHECK(net.rate(slow) == 10 * Mbit);
  CHECK(net.rate(a) == 45 * Mbit);
  CHECK(net.rate(b) == 45 * Mbit);
  net.set_cap(slow, 40 * Mbit, 1ms);
  CHECK(net.rate(slow) == doctest::Approx(100e6 / 3).epsilon(1e-12));
  net.set_cap(b, 20 * Mbit, 2ms);
  CHECK(net.rate(slow) == 40 * Mbit);
  CHECK(net.rate(a) == 40 * Mbit);
  CHECK(net.rate(b) == 20 * Mbit);
}

TEST_CASE("incast of n flows takes n S over the receiver's link and all flows end together") {
  for (const std::size_t n : {2, 7, 100}) {
    flow_network net;
    const auto h = star(net, n + 1, 100 * Mbit, 80 * Mbit);
    for (std::size_t i = 1; i <= n; ++i) send(net, h[i], h[0], 10 * MB, 0ns, i);
    CHECK(net.used(h[0].down) == doctest::Approx(80 * Mbit).epsilon(1e-12));
    const auto out = run_until_idle(net);
    REQUIRE(out.size() == n);
    for (std::size_t i = 0; i < n; ++i) {
      CHECK(out[i].tag == i + 1);
      CHECK(out[i].at == out[0].at);
      CHECK(std::abs((out[i].at - std::chrono::seconds(n)).count()) <= 1);
    }
  }
}

TEST_CASE("in a ring no two flows share a link: t = 8 S / min(up, down) for each") {
  flow_network net;
  constexpr std::size_t n = 16;
  const auto h = star(net, n, 50 * Mbit, 80 * Mbit);
  for (std::size_t i = 0; i < n; ++i) send(net, h[i], h[(i + 1) % n], 10 * MB, 0ns, i);
  const auto out = run_until_idle(net);
  REQUIRE(out.size() == n);
  for (std::size_t i = 0; i < n; ++i) {
    CHECK(out[i].at == 1600ms);
    CHECK(out[i].tag == i);
  }
}

TEST_CASE("in an all-to-all of n peers each direction carries n - 1 flows: t = 8 (n - 1) S / "
          "min(up, down)") {
  flow_network net;
  constexpr std::size_t n = 9;
  const auto h = star(net, n, 100 * Mbit, 80 * Mbit);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j)
      if (i != j) send(net, h[i], h[j], MB, 0ns);
  const auto out = run_until_idle(net);
  CHECK(out.size() == n * (n - 1));
  CHECK(out.front().at == 800ms);
  CHECK(out.back().at == 800ms);
}

TEST_CASE("a home that two peers share divides its link between them") {
  flow_network net;
  const auto home = net.add_link(20 * Mbit);
  const auto h = star(net, 3, 100 * Mbit, 100 * Mbit);
  const auto a = net.start(std::array{h[0].up, home, h[2].down}, 10 * MB, unlimited, 0ns, 0);
  const auto b = net.start(std::array{h[1].up, home, h[2].down}, 5 * MB, unlimited, 0ns, 1);
  CHECK(net.rate(a) == 10 * Mbit);
  CHECK(net.bottleneck(b) == home);
  CHECK(net.flows_on(home) == std::vector{a, b});
  const auto out = run_until_idle(net);
  CHECK(out[0].at == 4s);
  CHECK(out[1].at == 6s);
}

TEST_CASE("a change of capacity takes effect at its time") {
  flow_network net;
  const auto h = star(net, 2, 80 * Mbit, 1000 * Mbit);
  const auto f = send(net, h[0], h[1], 30 * MB, 0ns);
  net.set_capacity(h[0].up, 40 * Mbit, 1s); // 20 MB are left at 5 MB/s
  CHECK(net.next_completion() == 5s);
  net.set_capacity(h[0].up, 0, 2s);
  CHECK(net.next_completion() == std::nullopt);
  CHECK(net.expected_end(f) == duration::max());
  net.set_capacity(h[0].up, 120 * Mbit, 10s); // 15 MB are left
  CHECK(net.next_completion() == 11s);
}

TEST_CASE("a cancelled flow returns its remaining bytes and frees its share") {
  flow_network net;
  const auto h = star(net, 3, 80 * Mbit, 1000 * Mbit);
  const auto a = send(net, h[0], h[1], 10 * MB, 0ns);
  const auto b = send(net, h[0], h[2], 10 * MB, 0ns);
  CHECK(net.cancel(a, 1s) == 5 * MB);
  CHECK(net.rate(b) == 80 * Mbit);
  CHECK(net.next_completion() == 1500ms);
  CHECK_FALSE(net.alive(a));
  const auto again = send(net, h[0], h[1], MB, 1s);
  CHECK(again != a);
  CHECK(net.cancel(again, 1s) == MB);
  CHECK(net.active() == 1);
}

TEST_CASE("flows of no bytes or without any limit end at once") {
  flow_network net;
  const auto h = star(net, 2, 80 * Mbit, 80 * Mbit);
  send(net, h[0], h[1], 0, 1s, 1);
  net.start(std::span<const link_id>{}, 1000, unlimited, 1s, 2);
  net.start(std::span<const link_id>{}, MB, 8 * Mbit, 1s, 3);
  std::vector<finished_flow> out;
  net.advance(1s, out);
  REQUIRE(out.size() == 2);
  CHECK(out[0].tag == 1);
  CHECK(out[1].tag == 2);
  CHECK(net.next_completion() == 2s);
}

TEST_CASE("a long advance passes every end in order and applies the changed rates") {
  flow_network net;
  const auto h = star(net, 4, 80 * Mbit, 1000 * Mbit);
  send(net, h[0], h[1], 10 * MB, 0ns, 1);
  send(net, h[0], h[2], 20 * MB, 0ns, 2);
  send(net, h[0], h[3], 30 * MB, 0ns, 3);
  std::vector<finished_flow> out;
  net.advance(1h, out);
  REQUIRE(out.size() == 3);
  CHECK(out[0].at == 3s);
  CHECK(out[1].at == 5s);
  CHECK(out[2].at == 6s);
  CHECK(net.now() == 1h);
}

TEST_CASE("under random churn bytes are conserved, time is monotone and no link is over capacity") {
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    auto draw = stream(seed, "flow_network_test");
    flow_network net;
    std::vector<host> hosts;
    for (int i = 0; i < 20; ++i) {
      const auto up = net.add_link(draw.uniform(5, 50) * Mbit);
      const auto down = net.add_link(draw.uniform(5, 50) * Mbit);
      hosts.push_back({up, down});
    }
    struct record {
      std::uint64_t bytes;
      double moved = 0; // integrated by the test
    };
    std::map<flow_id, record> open;
    std::vector<finished_flow> out;
    duration now{0};
    duration last{0};
    double worst = 0;
    const auto settle_until = [&](duration until) {
      for (;;) {
        const auto next = net.next_completion();
        const auto to = next && *next <= until ? *next : until;
        for (auto& [id, r] : open) r.moved += net.rate(id) / 8 * to_seconds(to - now);
        out.clear();
        net.advance(to, out);
        now = to;
        for (const auto& f : out) {
          REQUIRE(f.at == to);
          REQUIRE(f.at >= last);
          last = f.at;
          const auto& r = open.at(f.flow);
          // An end is rounded up to a nanosecond, which is up to 0.00625 bytes at 50 Mbit/s.
          worst = std::max(worst, std::abs(r.moved - static_cast<double>(r.bytes)));
          open.erase(f.flow);
        }
        if (out.empty()) break;
      }
    };
    for (int step = 0; step < 2000; ++step) {
      settle_until(now + duration{static_cast<std::int64_t>(draw.below(50'000'000))});
      const auto what = draw.below(10);
      if (what < 7) {
        const auto a = draw.below(hosts.size()), b = draw.below(hosts.size());
        const auto bytes = 1 + draw.below(2 * MB);
        const auto cap = draw.below(3) == 0 ? draw.uniform(1, 20) * Mbit : unlimited;
        const auto f = send(net, hosts[a], hosts[b], bytes, now, 0, cap);
        REQUIRE(open.emplace(f, record{bytes}).second);
      } else if (what < 8 && !open.empty()) {
        auto it = open.begin();
        std::advance(it, static_cast<long>(draw.below(open.size())));
        const auto left = net.cancel(it->first, now);
        REQUIRE(std::abs(static_cast<double>(it->second.bytes - left) - it->second.moved) <= 1.001);
        open.erase(it);
      } else if (what < 9) {
        net.set_capacity(hosts[draw.below(hosts.size())].up, draw.uniform(5, 50) * Mbit, now);
      }
      for (const auto& h : hosts)
        for (const auto link : {h.up, h.down}) {
          double used = 0;
          for (const auto f : net.flows_on(link)) used += net.rate(f);
          REQUIRE(used <= net.capacity(link) * (1 + 1e-9));
        }
      for (const auto& [id, r] : open) {
        const auto link = net.bottleneck(id);
        if (!link) continue;
        REQUIRE(net.used(*link) >= net.capacity(*link) * (1 - 1e-9));
        for (const auto other : net.flows_on(*link))
          REQUIRE(net.rate(other) <= net.rate(id) * (1 + 1e-9));
      }
    }
    settle_until(now + 1h);
    CHECK(open.empty());
    CHECK(net.active() == 0);
    CHECK(worst <= 0.02);
    MESSAGE("worst difference of a flow's bytes: " << worst);
  }
}

TEST_CASE("the same history of flows ends in the same order at the same times") {
  const auto run = [] {
    auto draw = stream(11, "history");
    flow_network net;
    const auto h = star(net, 30, 40 * Mbit, 60 * Mbit);
    std::vector<finished_flow> out;
    for (std::uint64_t i = 0; i < 3000; ++i) {
      const auto a = draw.below(h.size()), b = draw.below(h.size());
      const auto at = std::chrono::milliseconds(i / 8);
      net.advance(at, out);
      send(net, h[a], h[b], 100'000 + draw.below(4) * 50'000, at, i);
    }
    net.advance(1h, out);
    std::vector<std::pair<std::uint64_t, duration>> history;
    for (const auto& f : out) history.emplace_back(f.tag, f.at);
    return history;
  };
  const auto first = run();
  CHECK(first.size() == 3000);
  CHECK(first == run());
  CHECK(std::is_sorted(first.begin(), first.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; }));
}
