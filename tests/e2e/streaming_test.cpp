// Samples are streamed: where the shard's line is the bottleneck, it sets the pace.
#include <doctest/doctest.h>

#include "tests/e2e/support/swarm.hpp"

using namespace shoal;
using namespace shoal::e2e;

namespace {

finished_run with_shard_uplink(const std::string& rate) {
  swarm what;
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

}  // namespace

TEST_CASE("halving the shard's uplink makes epochs at least one and a half times as long") {
  auto fast = with_shard_uplink("2Mbit"), slow = with_shard_uplink("1Mbit");
  auto ratio = slow.summary().virtual_seconds / fast.summary().virtual_seconds;
  MESSAGE("2 Mbit/s: " << fast.summary().virtual_seconds << " s, 1 Mbit/s: " << slow.summary().virtual_seconds
                       << " s, ratio " << ratio);
  CHECK(ratio > 1.5);
  CHECK(ratio < 2.5);
  // Not less than the bytes of what was committed need on that line.
  CHECK(fast.summary().virtual_seconds > static_cast<double>(fast.summary().samples) * 16384 * 8 / 2e6);
}

TEST_CASE("a shard uplink far above what is needed does not matter") {
  auto a = with_shard_uplink("500Mbit"), b = with_shard_uplink("1Gbit");
  CHECK(b.summary().virtual_seconds == doctest::Approx(a.summary().virtual_seconds).epsilon(0.15));
}
