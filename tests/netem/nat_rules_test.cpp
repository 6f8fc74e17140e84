#include "netem/nat_rules.hpp"
#include "tests/netem/support/small_world.hpp"

#include <doctest/doctest.h>

#include <vector>

using namespace shoal;
using namespace shoal::netem;
using namespace std::chrono_literals;

namespace {

using kind = nat_rules::answer::kind;
constexpr std::uint32_t relay_a = 90, relay_b = 91;

/// Hosts 0 to 3 have the four classes, and so do hosts 4 to 7, with one machine each. All are 10 ms
/// from each other, and 5 ms from relay_b.
nat_rules rules(double hole_punching = 1) {
  nat_rules out(1, hole_punching, [](std::uint32_t a, std::uint32_t b) {
    return a == relay_b || b == relay_b ? 5ms : 10ms;
  });
  for (std::uint32_t i = 0; i < 8; ++i) out.add(i, i, static_cast<nat_class>(i % 4));
  return out;
}

std::uint64_t opened(const nat_rules& r, way_in way) {
  return r.counts().connections[static_cast<std::size_t>(way)];
}

} // namespace

TEST_CASE("two hosts can punch unless both are symmetric or one is open or outbound only") {
  using enum nat_class;
  CHECK(can_punch(cone, cone));
  CHECK(can_punch(cone, symmetric));
  CHECK(can_punch(symmetric, cone));
  CHECK(!can_punch(symmetric, symmetric));
  CHECK(!can_punch(cone, outbound_only));
  CHECK(!can_punch(outbound_only, outbound_only));
  CHECK(!can_punch(open, cone));
}

TEST_CASE("without a relay a host reaches open hosts and is reached by hosts that it has dialled") {
  auto r = rules();
  CHECK(r.ask(0, 4, 100, 0s).what == kind::go);
  CHECK(r.counts() == nat_counts{}); // connections between open hosts are not counted
  for (std::uint32_t from : {1, 2, 3}) {
    CHECK(r.ask(0, from, 100, 1s).what == kind::never);
    CHECK(r.ask(from, 0, 100, 1s).what == kind::go);
    CHECK(r.ask(0, from, 100, 1s).what == kind::go);
    for (std::uint32_t to : {5, 6, 7}) {
      const auto answer = r.ask(from, to, 100, 1s);
      CHECK(answer.what == kind::never);
      CHECK(answer.why == unreachable_because::no_relay);
    }
  }
  CHECK(opened(r, way_in::direct) == 3);
  CHECK(r.counts().unreachable[0] == 12);
  r.forget(0);
  CHECK(r.ask(0, 1, 100, 2s).what == kind::never);
}

TEST_CASE("a relay signals reversal and punching and relays the rest, each with its delay") {
  auto r = rules();
  r.add_relay(relay_a, 1'000'000);
  const auto after = [&](std::uint32_t from, std::uint32_t to) {
    const auto answer = r.ask(from, to, 100, 1s);
    REQUIRE(answer.what == kind::wait);
    CHECK(r.ask(from, to, 100, answer.ready - 1ns).what == kind::wait);
    CHECK(r.ask(to, from, 0, answer.ready).what == kind::go);
    return answer.ready - 1s;
  };
  CHECK(after(0, 5) == 30ms); // 20 ms by the relay, 10 ms back
  CHECK(after(0, 7) == 30ms);
  CHECK(after(1, 5) == 70ms); // three times 20 ms, and 10 ms between the hosts
  CHECK(after(1, 6) == 70ms);
  CHECK(after(2, 6) == 40ms); // relayed
  CHECK(after(3, 5) == 40ms);
  CHECK(opened(r, way_in::reversed) == 2);
  CHECK(opened(r, way_in::punched) == 2);
  CHECK(opened(r, way_in::relayed) == 2);
  CHECK(r.ask(2, 6, 100, 2s).relay == relay_a);
  CHECK(r.ask(1, 5, 100, 2s).relay == nat_rules::nobody);
  CHECK(r.counts().relayed_bytes == 100);
}

TEST_CASE("punching works for the same pairs from either side and with the given probability") {
  std::size_t punched = 0;
  constexpr std::uint32_t many = 60;
  for (const bool swapped : {false, true}) {
    nat_rules r(7, 0.7, [](auto, auto) { return 10ms; });
    for (std::uint32_t i = 0; i < many; ++i) r.add(i, i, nat_class::cone);
    r.add_relay(relay_a, 1);
    for (std::uint32_t i = 0; i < many; ++i)
      for (std::uint32_t j = 0; j < i; ++j)
        (void)(swapped ? r.ask(j, i, 1, 0s) : r.ask(i, j, 1, 0s));
    if (swapped) CHECK(opened(r, way_in::punched) == punched);
    punched = opened(r, way_in::punched);
  }
  const double share = static_cast<double>(punched) / (many * (many - 1) / 2);
  CHECK(share == doctest::Approx(0.7).epsilon(0.05));
}

TEST_CASE("a relay with a spent budget refuses, the next nearest takes over, and then none") {
  auto r = rules(0);
  r.add_relay(relay_a, 10'000);
  r.add_relay(relay_b, 1000);
  CHECK(r.ask(1, 5, 600, 0s).ready == 20ms); // by the nearer relay
  CHECK(r.ask(1, 5, 600, 1s).relay == relay_b);
  CHECK(r.ask(1, 5, 600, 1s).what == kind::wait); // 400 bytes are left, so the other relay is used
  CHECK(r.ask(1, 5, 600, 2s).relay == relay_a);
  CHECK(r.relay_left());
  CHECK(r.ask(0, 5, 600, 2s).what == kind::wait); // reversed
  CHECK(r.ask(1, 5, 9401, 3s).what == kind::never);
  CHECK(!r.relay_left());
  CHECK(r.ask(0, 6, 1, 4s).why == unreachable_because::relay_spent);
  CHECK(r.ask(0, 5, 1, 4s).what == kind::go); // a connection stays open
  CHECK(r.counts().relayed_bytes == 1200);
}

TEST_CASE("a relay that died relays nothing") {
  auto r = rules(0);
  r.add_relay(relay_a, 10'000);
  CHECK(r.ask(1, 5, 100, 0s).what == kind::wait);
  CHECK(r.ask(1, 5, 100, 1s).what == kind::go);
  r.forget(relay_a);
  CHECK(r.ask(1, 5, 100, 2s).what == kind::never);
}

TEST_CASE(
    "a cone shows one address to all, a symmetric host a new one to each, an outbound one none") {
  auto r = rules();
  CHECK(r.address_of(1, 0) == r.address_of(1, 4));
  CHECK(r.address_of(2, 0) != r.address_of(2, 4));
  CHECK(r.address_of(3, 0) == 0);
  CHECK(r.address_of(0, 1) != 0);
}

// -- in the fabric --------------------------------------------------------------------------------

namespace {

using namespace shoal::netem::testing;

host_index behind(small_world& w, nat_class nat) {
  static int n = 0;
  return w.net->start_host(w.net->add_machine({.name = "nat-" + std::to_string(n++),
                                               .region = w.here,
                                               .up = {8e6},
                                               .down = {8e6},
                                               .nat = nat}));
}

host_index relay(small_world& w, std::uint64_t budget) {
  return w.net->add_relay(
      {.name = "relay." + std::to_string(budget), .region = w.here, .up = {4e6}, .down = {8e6}},
      budget);
}

} // namespace

TEST_CASE("the fabric drops messages that reach nobody and passes the answer once the other side "
          "has dialled") {
  small_world w;
  auto home = behind(w, nat_class::cone), lab = w.host();
  std::vector<received> at_home, at_lab;
  auto to_home = w.collector(home, at_home), to_lab = w.collector(lab, at_lab);
  w.does_at(1s, lab, [&](puppet& self) { self.send(to_home, note{1}); });
  w.does_at(2s, home, [&](puppet& self) { self.send(to_lab, note{2}); });
  w.does_at(3s, lab, [&](puppet& self) { self.send(to_home, note{3}); });
  w.run();
  REQUIRE(at_home.size() == 1);
  CHECK(at_home[0].n == 3);
  CHECK(at_lab.size() == 1);
  auto totals = w.net->nat_totals();
  REQUIRE(totals);
  CHECK(totals->unreachable[0] == 1);
  CHECK(w.net->dial(home, lab).opens);
  CHECK(!w.net->dial(lab, home).opens);
}

TEST_CASE("relayed bulk takes the relay's links and waiting messages keep their order") {
  small_world w;
  auto a = behind(w, nat_class::symmetric), b = behind(w, nat_class::symmetric);
  relay(w, 10'000'000);
  w.net->set_path(w.here, w.here, {.delay = 10ms});
  std::vector<received> got;
  auto to = w.collector(b, got);
  w.does(a, [&](puppet& self) {
    self.send(to, bulk{1, std::string(500'000, 'x')});
    self.send(to, bulk{2, std::string(500'000, 'x')});
  });
  w.run();
  REQUIRE(got.size() == 2);
  CHECK(got[0].n == 1);
  const auto bytes = w.wire_bytes_of("bulk");
  // Set-up by the relay takes 40 ms, then the uplink has 4 Mbit/s, then both delays follow.
  CHECK(std::abs(to_seconds(got[0].at) - (0.04 + to_seconds(at_rate(bytes, 4e6)) + 0.02)) < 1e-3);
  CHECK(w.net->nat_totals()->relayed_bytes == 2 * bytes);
}

TEST_CASE("hosts that die while a connection is being made lose the messages that waited for it") {
  small_world w;
  auto a = behind(w, nat_class::cone), b = behind(w, nat_class::symmetric);
  relay(w, 10'000'000);
  w.net->set_path(w.here, w.here, {.delay = 10ms});
  std::vector<received> got;
  auto to = w.collector(b, got);
  w.does(a, [&](puppet& self) { self.send(to, note{1}); });
  w.does_at(5ms, b, [&](puppet&) { w.net->kill(b, kill_scope::process); });
  w.run();
  CHECK(got.empty());
  CHECK(w.net->lost() == 1);
}
