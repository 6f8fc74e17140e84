// The DHT on the emulated network, on its own: a record with a living replica survives the death of
// nodes.
#include "tests/e2e/support/dht_network.hpp"
#include "tests/e2e/support/swarm.hpp"
#include "tests/support/skip.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>

using namespace shoal;
using namespace shoal::e2e;
using namespace std::chrono_literals;

namespace {

void check(const dht_network& what) {
  auto f = run_dht_network(what);
  CHECK(f.ready == what.nodes);
  CHECK(f.misbehaved == 0);
  CHECK(f.bypassed == 0);
  CHECK(f.answered_wrongly == 0);
  // Every key with a living replica answers, and no other.
  CHECK(f.answered == what.keys - f.lost_expected);
  // Which is what chance says: a share of killed^5, within four deviations. Keys near to each other
  // share their replicas, about keys / nodes of them, and are lost together.
  auto mean = static_cast<double>(what.keys) * std::pow(what.killed, 5);
  auto together = 1 + static_cast<double>(what.keys) / static_cast<double>(what.nodes);
  CHECK(std::abs(static_cast<double>(f.lost_expected) - mean) <=
        4 * std::sqrt(mean * together) + 1);
  CHECK(f.answered_later == what.keys);
  CHECK(f.hops_max <= std::log2(static_cast<double>(what.nodes)));
  CHECK(f.hops_mean <= std::log2(static_cast<double>(what.nodes)) / 2);
  MESSAGE("lost " << f.lost_expected << " of " << what.keys << ", hops " << f.hops_mean
                  << " at most " << f.hops_max);
}

} // namespace

TEST_CASE("a fifth of 100 hosts may die at once: every key with a living replica answers, and all "
          "after a republishing") {
  dht_network what;
  what.nodes = 100;
  what.keys = 1000;
  what.timed = 20;
  check(what);
}

TEST_CASE("two fifths of 100 hosts may die at once: keys whose five replicas are among them are "
          "lost until their owners store again") {
  std::size_t lost = 0;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    dht_network what;
    what.nodes = 100;
    what.keys = 1000;
    what.timed = 0;
    what.killed = 0.4;
    what.seed = seed;
    auto f = run_dht_network(what);
    lost += f.lost_expected;
    CHECK(f.answered == what.keys - f.lost_expected);
    CHECK(f.answered_later == what.keys);
    CHECK(f.misbehaved == 0);
  }
  CHECK(lost > 0); // few networks have five neighbours that all die
}

TEST_CASE("a fifth of 1024 hosts may die at once: every key with a living replica answers, and all "
          "after a republishing") {
  SHOAL_NIGHTLY();
  dht_network what;
  what.keys = 20'000;
  check(what);
}

TEST_CASE("a reader behind a line that has become slow goes on seeing what changes") {
  struct line {
    duration delay, jitter;
    double oldest; // seconds; while the replicas' answers were not waited for, it was 32 of them,
                   // and 60 where they come too late
  };
  // Answers come after slow_after, about then, and mostly after request_timeout.
  for (const auto& [delay, jitter, oldest] :
       {line{350ms, {}, 3}, line{250ms, 100ms, 3}, line{1200ms, {}, 5}, line{1600ms, 200ms, 15}})
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
      dht_slow_line what;
      what.delay = delay;
      what.jitter = jitter;
      what.seed = seed;
      const auto f = run_dht_slow_line(what);
      INFO("delay " << to_seconds(what.delay) << " s, seed " << seed << ": " << f.reads
                    << " reads, " << f.unanswered << " open");
      CHECK(f.reads >= 1100);
      CHECK(f.empty == 0);
      CHECK(f.oldest <= oldest);
      CHECK(f.misbehaved == 0);
    }
}

TEST_CASE("a reader finds every owner of a key soon after 256 nodes start in one second") {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    young_dht_network what;
    what.seed = seed;
    what.reads = {10s, 30s, 60s};
    const auto f = run_young_dht_network(what);
    CAPTURE(seed);
    CHECK(f.misbehaved == 0);
    for (const auto least : f.least) CHECK(least == what.owners);
  }
}

TEST_CASE("no peer is indispensable: after any peer is killed in the middle of a run, the first "
          "included, the others go on") {
  for (unsigned who = 0; who < 8; ++who)
    for (const char* scope : {"process", "machine"}) {
      swarm what;
      what.peers = 8;
      what.faults = {fmt::format("{{kill: {}, select: p-{}, at: 3s}}", scope, who)};
      auto run = run_swarm(what);
      INFO(run.text(what.yaml()));
      CHECK(run.errors.empty());
      CHECK(run.summary().peers.alive == 7);
    }
}

TEST_CASE("the first half of a swarm may die, and those who join after it find the rest") {
  swarm what;
  what.peers = 8;
  what.epochs = 14;
  what.late = "  late: {count: 2, up: 1Mbit, down: 4Mbit, device: fast, start: 7s}\n";
  what.faults = {"{kill: machine, select: 'p-[0-3]', at: 5s}"};
  auto run = run_swarm(what);
  INFO(run.text(what.yaml()));
  CHECK(run.errors.empty());
  CHECK(run.summary().peers.alive == 6);
  CHECK(run.adopted >= 2);
}

TEST_CASE("the first peers may die before anybody else has joined") {
  for (int ms : {1, 5, 11, 15, 25, 60, 100, 200}) {
    swarm what;
    what.peers = 4;
    what.faults = {fmt::format("{{kill: process, select: p-0, at: {}ms}}", ms)};
    auto run = run_swarm(what);
    INFO(run.text(what.yaml()));
    CHECK(run.errors.empty());
  }
}
