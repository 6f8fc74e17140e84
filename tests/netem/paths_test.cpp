// The effects of paths on messages: lines, shared links, coordinates, loss, duplicates, reordering.
#include "tests/netem/support/small_world.hpp"

#include <caf/send.hpp>
#include <doctest/doctest.h>

#include <cmath>

using namespace shoal;
using namespace shoal::netem;
using namespace shoal::netem::testing;
using namespace std::chrono_literals;

namespace {

constexpr data_rate fast{8e9};

host_index host_with(small_world& w, machine_options options) {
  if (options.up.bits_per_second == 0) options.up = options.down = fast;
  options.name = "m";
  return w.net->start_host(w.net->add_machine(options));
}

/// The arrival of a note that is sent at time 0.
duration note_time(small_world& w, host_index from, host_index to) {
  std::vector<received> got;
  auto sink = w.collector(to, got);
  w.does(from, [sink](puppet& self) { self.send(sink, note{1}); });
  w.run();
  REQUIRE(got.size() == 1);
  return got.front().at;
}

} // namespace

TEST_CASE("the delays of both lines add to the delay between the regions") {
  small_world w;
  w.net->set_path(w.here, w.here, {.delay = 50ms});
  auto a = host_with(w, {.line = {.delay = 7ms}});
  auto b = host_with(w, {.line = {.delay = 20ms}});
  CHECK(w.net->delay_between(a, b) == 77ms);
  CHECK(to_seconds(note_time(w, a, b)) == doctest::Approx(0.077).epsilon(1e-4));
}

TEST_CASE("the delay between hosts with coordinates is their distance") {
  small_world w;
  w.net->set_path(w.here, w.here, {.delay = 500ms});
  auto a = host_with(w, {.line = {.delay = 1ms}, .at = coordinates{0.03, 0, 0.005}});
  auto b = host_with(w, {.at = coordinates{0, 0.04, 0.002}});
  auto nowhere = host_with(w, {});
  CHECK(w.net->delay_between(a, b) == 58ms);
  CHECK(w.net->delay_between(a, nowhere) == 501ms);
  CHECK(to_seconds(note_time(w, a, b)) == doctest::Approx(0.058).epsilon(1e-4));
}

TEST_CASE("hosts in a home share its line, but not for messages between them") {
  small_world w;
  auto region = w.net->add_site("region", {1e9}, {1e9});
  auto home = w.net->add_site("home", {8e6}, {8e7}, region);
  auto a = host_with(w, {.site = home}), b = host_with(w, {.site = home});
  auto away = host_with(w, {}), also_away = host_with(w, {});
  std::vector<received> got;
  auto sink = w.collector(away, got), other = w.collector(also_away, got);
  const std::string megabyte(1'000'000, 'x');
  w.does(a, [sink, &megabyte](puppet& self) { self.send(sink, bulk{1, megabyte}); });
  w.does(b, [other, &megabyte](puppet& self) { self.send(other, bulk{2, megabyte}); });
  w.run();
  REQUIRE(got.size() == 2);
  // 2 MB pass 1 MB/s; headers are 2.8 %.
  CHECK(to_seconds(got.back().at) == doctest::Approx(2.056).epsilon(0.002));
  std::vector<received> inside;
  auto neighbour = w.collector(b, inside);
  const auto begun = w.now();
  w.does(a, [neighbour, &megabyte](puppet& self) { self.send(neighbour, bulk{3, megabyte}); });
  w.run();
  REQUIRE(inside.size() == 1);
  CHECK(to_seconds(inside.front().at - begun) == doctest::Approx(0.001028).epsilon(0.01));
}

TEST_CASE("the links of a transfer have names") {
  small_world w;
  const auto home = w.net->add_site("attic", {1e6}, {1e6});
  w.net->add_machine({.name = "pc", .region = w.here, .up = fast, .down = fast, .site = home});
  CHECK(w.net->name_of(link_id{0}) == "uplink of attic");
  CHECK(w.net->name_of(link_id{1}) == "downlink of attic");
  CHECK(w.net->name_of(link_id{2}) == "uplink of pc");
  CHECK(w.net->name_of(link_id{3}) == "downlink of pc");
  const auto slow = w.net->add_machine(
      {.name = "old", .region = w.here, .up = fast, .down = fast, .serialize = {1e6}});
  CHECK(slow == 1);
  CHECK(w.net->name_of(link_id{6}) == "processor of old");
}

TEST_CASE("bulk that a host sends and receives shares the rate at which it serializes") {
  small_world w;
  const auto slow = [&] { return host_with(w, {.serialize = {8e6}}); };
  auto a = slow(), b = slow(), c = host_with(w, {}), d = host_with(w, {});
  std::vector<received> at_a, at_b, at_d;
  auto to_a = w.collector(a, at_a), to_b = w.collector(b, at_b), to_d = w.collector(d, at_d);
  const std::string megabyte(1'000'000, 'x');
  const auto seconds_of = [&](auto... what) {
    const auto begun = w.now();
    (what(), ...);
    w.run();
    return to_seconds(w.now() - begun);
  };
  const auto send = [&](host_index from, const caf::actor& to, std::uint32_t n) {
    return [&w, &megabyte, from, to, n] {
      w.does(from, [to, n, &megabyte](puppet& self) { self.send(to, bulk{n, megabyte}); });
    };
  };
  // A line passes 1 GB/s, and a and b serialize 1 MB/s; headers are 2.8 %.
  CHECK(seconds_of(send(a, to_d, 1)) == doctest::Approx(1.028).epsilon(0.002));
  CHECK(seconds_of(send(a, to_b, 2)) == doctest::Approx(1.028).epsilon(0.002));
  // In and out together have the rate, and so have two transfers that leave.
  CHECK(seconds_of(send(a, to_d, 3), send(c, to_a, 4)) == doctest::Approx(2.056).epsilon(0.002));
  CHECK(seconds_of(send(a, to_d, 5), send(a, to_b, 6)) == doctest::Approx(2.056).epsilon(0.002));
  CHECK(seconds_of(send(c, to_d, 7)) == doctest::Approx(0.001028).epsilon(0.01));
  CHECK(at_a.size() + at_b.size() + at_d.size() == 7);
}

TEST_CASE("small messages do not wait for the processor of a host") {
  small_world w;
  auto a = host_with(w, {.serialize = {8e6}}), b = host_with(w, {});
  std::vector<received> got;
  auto sink = w.collector(b, got);
  const std::string megabyte(1'000'000, 'x');
  w.does(a, [sink, &megabyte](puppet& self) {
    self.send(sink, bulk{1, megabyte});
    self.send(sink, note{2});
  });
  w.run();
  REQUIRE(got.size() == 2);
  CHECK(got.front().n == 2);
  CHECK(to_seconds(got.front().at) < 0.001);
}

TEST_CASE("a lost small message comes after a timeout and later ones wait for it") {
  small_world w;
  path_quality lossy{.delay = 50ms};
  lossy.loss.rate = 0.2;
  w.net->set_path(w.here, w.here, lossy);
  auto a = w.host(8e9), b = w.host(8e9);
  std::vector<received> got;
  auto sink = w.collector(b, got);
  constexpr std::uint32_t count = 2000;
  for (std::uint32_t n = 0; n < count; ++n)
    w.does_at(n * 10s, a, [sink, n](puppet& self) {
      self.send(sink, note{2 * n});
      self.send(sink, note{2 * n + 1});
    });
  w.run();
  REQUIRE(got.size() == 2 * count);
  std::uint32_t late = 0;
  for (std::uint32_t n = 0; n < count; ++n) {
    CHECK(got[2 * n].n == 2 * n);
    const auto took = got[2 * n].at - n * 10s;
    if (took < 60ms) continue;
    ++late;
    // RTT + 200 ms, then twice and four times that.
    const double timeouts = (to_seconds(took) - 0.05) / 0.3;
    CHECK(std::abs(timeouts - std::round(timeouts)) < 0.001);
    CHECK(got[2 * n + 1].at >= got[2 * n].at);
  }
  CHECK(late == doctest::Approx(0.2 * count).epsilon(0.1));
}

TEST_CASE("duplicates cost bytes and nothing else") {
  small_world w;
  path_quality q{.delay = 50ms};
  q.duplicate = 0.5;
  w.net->set_path(w.here, w.here, q);
  auto a = w.host(8e9), b = w.host(8e9);
  std::vector<received> got;
  auto sink = w.collector(b, got);
  for (std::uint32_t n = 0; n < 1000; ++n)
    w.does_at(n * 1s, a, [sink, n](puppet& self) { self.send(sink, note{n}); });
  w.run();
  CHECK(got.size() == 1000);
  const auto one = w.wire_bytes_of("note");
  std::uint64_t sent = 0;
  for (std::size_t c = 0; c < fabric::traffic_classes; ++c) sent += w.net->traffic_bytes(c);
  CHECK(static_cast<double>(sent) / static_cast<double>(one) ==
        doctest::Approx(1500).epsilon(0.05));
}

TEST_CASE("a reordered message skips the delay but does not overtake earlier ones") {
  small_world v;
  path_quality r{.delay = 50ms};
  r.reorder = 0.25;
  v.net->set_path(v.here, v.here, r);
  auto c = v.host(8e9), d = v.host(8e9);
  std::vector<received> there;
  auto end = v.collector(d, there);
  for (std::uint32_t n = 0; n < 1000; ++n)
    v.does_at(n * 1s, c, [end, n](puppet& self) { self.send(end, note{n}); });
  v.run();
  REQUIRE(there.size() == 1000);
  std::size_t early = 0;
  for (std::uint32_t n = 0; n < 1000; ++n) {
    CHECK(there[n].n == n);
    early += there[n].at - n * 1s < 1ms ? 1 : 0;
  }
  CHECK(early == doctest::Approx(250).epsilon(0.15));
}
