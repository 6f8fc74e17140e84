// The DHT on the emulated network, on its own: who dies takes nothing along that had a living replica.
#include <cmath>

#include <doctest/doctest.h>

#include "tests/e2e/support/dht_network.hpp"
#include "tests/support/skip.hpp"

using namespace shoal;
using namespace shoal::e2e;

namespace {

void check(const dht_network& what) {
  auto f = run_dht_network(what);
  CHECK(f.ready == what.nodes);
  CHECK(f.misbehaved == 0);
  CHECK(f.bypassed == 0);
  CHECK(f.answered_wrongly == 0);
  // Every key with a living replica answers, and no other.
  CHECK(f.answered == what.keys - f.lost_expected);
  // Which is what chance says: Poisson with mean keys * 0.2^5, within four deviations.
  auto mean = static_cast<double>(what.keys) * std::pow(what.killed, 5);
  CHECK(std::abs(static_cast<double>(f.lost_expected) - mean) <= 4 * std::sqrt(mean) + 1);
  CHECK(f.answered_later == what.keys);
  CHECK(f.hops_max <= std::log2(static_cast<double>(what.nodes)));
  CHECK(f.hops_mean <= std::log2(static_cast<double>(what.nodes)) / 2);
  MESSAGE("lost " << f.lost_expected << " of " << what.keys << ", hops " << f.hops_mean << " at most " << f.hops_max);
}

}  // namespace

TEST_CASE("a fifth of 100 hosts may die at once: every key with a living replica answers, and all after a republishing") {
  dht_network what;
  what.nodes = 100;
  what.keys = 1000;
  what.timed = 20;
  check(what);
}

TEST_CASE("a fifth of 1024 hosts may die at once: every key with a living replica answers, and all after a republishing") {
  SHOAL_NIGHTLY();
  dht_network what;
  what.keys = 20'000;
  check(what);
}
