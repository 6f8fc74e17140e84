#include "netem/fabric.hpp"
#include "tests/netem/support/small_world.hpp"

#include <caf/binary_serializer.hpp>
#include <caf/send.hpp>
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>

using namespace shoal;
using namespace shoal::netem;
using namespace shoal::netem::testing;
using namespace std::chrono_literals;

namespace {

/// The wire size of a message by the header of the fabric.
template <class T>
std::uint64_t stated_wire_size(small_world& w, const T& x, const char* type) {
  std::vector<char> buffer;
  caf::binary_serializer out{*w.system, buffer};
  REQUIRE_FALSE(out(const_cast<T&>(x)));
  auto body = buffer.size() + std::strlen(type) + 32;
  return body + 40 * ((body + 1447) / 1448);
}

std::vector<delivered_event> jittery_run(std::uint64_t seed) {
  small_world w{time_mode::virtual_time, seed};
  w.net->set_path(w.here, w.here, {50ms, 40ms});
  std::vector<received> got;
  std::vector<host_index> hosts;
  std::vector<caf::actor> sinks;
  for (int i = 0; i < 4; ++i) {
    hosts.push_back(w.host());
    sinks.push_back(w.collector(hosts.back(), got));
  }
  for (auto h : hosts)
    w.does(h, [sinks](puppet& self) {
      for (std::uint32_t n = 0; n < 50; ++n)
        for (auto& sink : sinks) {
          self.send(sink, note{n});
          if (n % 10 == 0) self.send(sink, bulk{1000 + n, std::string(10'000, 'x')});
        }
    });
  w.run();
  return w.history;
}

bool same(const delivered_event& a, const delivered_event& b) {
  return a.kind == b.kind && a.time == b.time && a.sent == b.sent && a.from.host == b.from.host &&
         a.from.ordinal == b.from.ordinal && a.to.host == b.to.host &&
         a.to.ordinal == b.to.ordinal && std::strcmp(a.type, b.type) == 0 &&
         a.wire_bytes == b.wire_bytes;
}

} // namespace

TEST_CASE("a small message takes its serialization at the uplink and one delay") {
  small_world w;
  w.net->set_path(w.here, w.here, {30ms, 0ms});
  auto a = w.host(1e6, 1e3), b = w.host(1e3, 1e6); // the slow directions are not in use
  std::vector<received> got;
  auto sink = w.collector(b, got);
  w.does(a, [sink](puppet& self) {
    self.send(sink, note{1});
    self.send(sink, note{2});
  });
  w.run();
  auto bytes = w.wire_bytes_of("note");
  REQUIRE(got.size() == 2);
  CHECK(got[0] == received{30ms + at_rate(bytes, 1e6), 1});
  CHECK(got[1] == received{30ms + 2 * at_rate(bytes, 1e6), 2});
}

TEST_CASE("a bulk message takes its bytes over the narrower of both links and one delay") {
  small_world w;
  w.net->set_path(w.here, w.here, {30ms, 0ms});
  auto a = w.host(4e6), b = w.host(1e6), c = w.host(8e6);
  std::vector<received> got;
  auto to_b = w.collector(b, got), to_c = w.collector(c, got);
  auto send_bulk = [](const caf::actor& to, std::uint32_t n) {
    return [to, n](puppet& self) { self.send(to, bulk{n, std::string(100'000, 'x')}); };
  };
  w.does(a, send_bulk(to_b, 1));
  w.does_at(10s, a, send_bulk(to_c, 2));
  w.run();
  auto bytes = w.wire_bytes_of("bulk");
  CHECK(bytes > 100'000);
  REQUIRE(got.size() == 2);
  CHECK(got[0].at == 30ms + at_rate(bytes, 1e6));
  CHECK(got[1].at == 10s + 30ms + at_rate(bytes, 4e6));
  CHECK(w.net->traffic_bytes(1) == 2 * bytes);
  CHECK(w.net->traffic_bytes(0) == 0);
}

TEST_CASE("two flows share an uplink and the remaining one takes all of it") {
  small_world w;
  auto a = w.host(8e6), b = w.host(80e6), c = w.host(80e6);
  std::vector<received> got;
  auto to_b = w.collector(b, got), to_c = w.collector(c, got);
  w.does(a, [=](puppet& self) {
    self.send(to_b, bulk{1, std::string(100'000, 'x')});
    self.send(to_c, bulk{2, std::string(300'000, 'x')});
  });
  w.clock.run(10ms);
  CHECK(w.net->active_flows() == 2);
  CHECK(w.net->orphaned_flows() == 0);
  w.run();
  REQUIRE(w.history.size() >= 2);
  std::vector<std::uint64_t> bytes;
  for (auto& event : w.history)
    if (event.kind == event_kind::message) bytes.push_back(event.wire_bytes);
  REQUIRE(got.size() == 2);
  // Both flows have half the rate until the shorter one ends; then the other one has all of it.
  CHECK(got[0].n == 1);
  CHECK(std::abs((got[0].at - at_rate(2 * bytes[0], 8e6)).count()) <= 2);
  CHECK(std::abs((got[1].at - at_rate(bytes[0] + bytes[1], 8e6)).count()) <= 2);
  CHECK(w.net->active_flows() == 0);
}

TEST_CASE("bulk of one pair goes one message after the other") {
  small_world w;
  auto a = w.host(8e6), b = w.host(80e6);
  std::vector<received> got;
  auto sink = w.collector(b, got);
  w.does(a, [=](puppet& self) {
    for (std::uint32_t n = 1; n <= 3; ++n) self.send(sink, bulk{n, std::string(100'000, 'x')});
  });
  w.run();
  auto bytes = w.wire_bytes_of("bulk");
  REQUIRE(got.size() == 3);
  for (std::uint32_t n = 1; n <= 3; ++n) {
    CHECK(got[n - 1].n == n);
    CHECK(std::abs((got[n - 1].at - at_rate(n * bytes, 8e6)).count()) <= 3);
  }
}

TEST_CASE("a small message does not wait for bulk that was sent before it") {
  small_world w;
  w.net->set_path(w.here, w.here, {30ms, 0ms});
  auto a = w.host(1e6), b = w.host(1e6);
  std::vector<received> got;
  auto sink = w.collector(b, got);
  w.does(a, [=](puppet& self) {
    self.send(sink, bulk{1, std::string(1'000'000, 'x')});
    self.send(sink, note{2});
  });
  w.run();
  REQUIRE(got.size() == 2);
  CHECK(got[0] == received{30ms + at_rate(w.wire_bytes_of("note"), 1e6), 2});
  CHECK(got[1].at > 8s);
}

TEST_CASE("messages of one pair and class keep their order under jitter") {
  small_world w;
  w.net->set_path(w.here, w.here, {50ms, 50ms});
  auto a = w.host(80e6), b = w.host(80e6);
  std::vector<received> got;
  auto sink = w.collector(b, got);
  w.does(a, [=](puppet& self) {
    for (std::uint32_t n = 0; n < 500; ++n) {
      self.send(sink, note{n});
      if (n % 10 == 0) self.send(sink, bulk{1000 + n, std::string(5'000, 'x')});
    }
  });
  w.run();
  std::vector<std::uint32_t> small, large;
  for (auto& one : got) (one.n < 1000 ? small : large).push_back(one.n);
  CHECK(small.size() == 500);
  CHECK(large.size() == 50);
  CHECK(std::is_sorted(small.begin(), small.end()));
  CHECK(std::is_sorted(large.begin(), large.end()));
}

TEST_CASE("jitter stays within its bounds and reaches both of them") {
  small_world w;
  w.net->set_path(w.here, w.here, {50ms, 20ms});
  auto a = w.host(8e12), b = w.host(8e12);
  std::vector<received> got;
  auto sink = w.collector(b, got);
  for (int i = 0; i < 2000; ++i)
    w.does_at(i * 1s, a, [=](puppet& self) { self.send(sink, note{1}), self.quit(); });
  w.run();
  REQUIRE(got.size() == 2000);
  auto least = duration::max(), most = duration::min();
  for (std::size_t i = 0; i < got.size(); ++i) {
    duration took = got[i].at - static_cast<int>(i) * 1s;
    least = std::min(least, took);
    most = std::max(most, took);
  }
  CHECK(least >= 30ms);
  CHECK(least < 31ms);
  CHECK(most <= 70ms + 1us);
  CHECK(most > 69ms);
}

TEST_CASE("the same seed gives the same events and another seed gives others") {
  auto one = jittery_run(1), again = jittery_run(1), other = jittery_run(2);
  REQUIRE(one.size() == again.size());
  CHECK(std::equal(one.begin(), one.end(), again.begin(), same));
  CHECK(one.size() == other.size());
  CHECK_FALSE(std::equal(one.begin(), one.end(), other.begin(), other.end(), same));
}

TEST_CASE("the wire size is that of the serializer plus the stated overhead") {
  small_world w;
  auto a = w.host(), b = w.host();
  std::vector<received> got;
  auto sink = w.collector(b, got);
  for (std::size_t size : {0, 1, 100, 1'300, 1'448, 5'000, 1'000'000}) {
    w.history.clear();
    bulk what{7, std::string(size, 'x')};
    w.does(a, [=](puppet& self) { self.send(sink, what); });
    w.run();
    CHECK(w.wire_bytes_of("bulk") == stated_wire_size(w, what, "bulk"));
  }
  w.does(a, [=](puppet& self) { self.send(sink, note{7}); });
  w.run();
  CHECK(w.wire_bytes_of("note") == stated_wire_size(w, note{7}, "note"));
}

TEST_CASE("messages between actors of one host take no time and no bytes") {
  small_world w;
  w.net->set_path(w.here, w.here, {30ms, 0ms});
  auto a = w.host(1e3);
  std::vector<received> got;
  auto sink = w.collector(a, got);
  w.does_at(1s, a, [=](puppet& self) {
    self.send(sink, bulk{1, std::string(1'000'000, 'x')});
    self.send(sink, note{2});
  });
  w.run();
  CHECK(got == std::vector<received>{{1s, 1}, {1s, 2}});
  CHECK(w.net->traffic_bytes(0) + w.net->traffic_bytes(1) == 0);
}

TEST_CASE("delays are those of the pair of regions in both directions") {
  small_world w;
  auto far = w.net->add_region("far");
  w.net->set_path(w.here, far, {80ms, 0ms});
  w.net->set_path(far, far, {2ms, 0ms});
  auto a = w.host(8e12);
  auto b = w.net->start_host(w.net->add_machine("b", far, {8e12}, {8e12}));
  auto c = w.net->start_host(w.net->add_machine("c", far, {8e12}, {8e12}));
  std::vector<received> got;
  auto to_a = w.collector(a, got), to_b = w.collector(b, got), to_c = w.collector(c, got);
  w.does(a, [=](puppet& self) { self.send(to_b, note{1}); });
  w.does(b, [=](puppet& self) { self.send(to_a, note{2}), self.send(to_c, note{3}); });
  w.run();
  REQUIRE(got.size() == 3);
  CHECK(got[0].n == 3);
  CHECK(got[0].at / 1ms == 2);
  CHECK(got[1].at / 1ms == 80);
  CHECK(got[2].at / 1ms == 80);
}

TEST_CASE("unused connections are forgotten and order is kept nevertheless") {
  small_world w;
  w.net->set_path(w.here, w.here, {10ms, 10ms});
  std::vector<received> got;
  std::vector<host_index> hosts;
  std::vector<caf::actor> sinks;
  for (int i = 0; i < 60; ++i) {
    hosts.push_back(w.host(80e6));
    sinks.push_back(w.collector(hosts.back(), got));
  }
  // 60 * 59 pairs are more than the fabric keeps before it drops idle ones. Three rounds drop them
  // three times.
  for (int round = 0; round < 3; ++round)
    for (auto h : hosts)
      w.does_at(round * 1s, h, [=](puppet& self) {
        for (auto& sink : sinks) self.send(sink, note{1});
        self.quit();
      });
  w.run();
  CHECK(got.size() == 3 * 60 * 60);
  CHECK(w.net->lost() == 0);
}

TEST_CASE("a returned name stays as it was when the host gets another name") {
  small_world w;
  const auto nameless = w.net->start_host(w.net->add_machine("", w.here, {8e6}, {8e6}));
  auto&& asked = w.net->name_of(nameless);
  w.net->set_name(nameless, "a name that is too long for the string's own buffer");
  CHECK(asked.empty());
  CHECK(w.net->name_of(nameless) == "a name that is too long for the string's own buffer");
}
