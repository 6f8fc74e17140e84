// Samples are streamed: where the shard's line is the bottleneck, it sets the pace.
#include "tests/e2e/support/swarm.hpp"

#include <doctest/doctest.h>

using namespace shoal;
using namespace shoal::e2e;

namespace {

finished_run with_shard_uplink(const std::string& rate, std::uint64_t seed = 1) {
  swarm what;
  what.seed = seed;
  what.kind = "timing";
  what.peers = 4;
  what.epochs = 8;
  what.stop_time = "30min";
  what.data = ", up: " + rate;
  auto yaml = what.yaml();
  auto at = yaml.find("sample_size: 64B");
  yaml.replace(at, 16, "sample_size: 16KiB");
  auto run = run_yaml(yaml, what.epochs);
  INFO(run.text(yaml));
  CHECK(run.errors.empty());
  return run;
}

} // namespace

TEST_CASE("halving the shard's uplink makes epochs at least one and a half times as long") {
  // The figure is the sum of several runs. The ends of the faster ones depend on the samples on
  // their way at the end of an epoch.
  double with_fast = 0, with_slow = 0;
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    auto fast = with_shard_uplink("2Mbit", seed), slow = with_shard_uplink("1Mbit", seed);
    with_fast += fast.summary().virtual_seconds / 8;
    with_slow += slow.summary().virtual_seconds / 8;
    // Not less than the bytes of what was committed need on that line.
    CHECK(fast.summary().virtual_seconds >
          static_cast<double>(fast.summary().samples) * 16384 * 8 / 2e6);
  }
  auto ratio = with_slow / with_fast;
  MESSAGE("2 Mbit/s: " << with_fast << " s, 1 Mbit/s: " << with_slow << " s, ratio " << ratio);
  CHECK(ratio > 1.5);
  CHECK(ratio < 2.5);
}

TEST_CASE("a shard uplink far above what is needed does not matter") {
  auto a = with_shard_uplink("500Mbit"), b = with_shard_uplink("1Gbit");
  CHECK(b.summary().virtual_seconds == doctest::Approx(a.summary().virtual_seconds).epsilon(0.15));
}
