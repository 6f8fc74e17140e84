// scenarios/bench: policies of rebalancing on small traces, and the square-cube law of pipelines.
#include "scenarios/bench/rebalancing_on_trace.hpp"
#include "scenarios/bench/square_cube.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <string>

using namespace shoal;
using namespace shoal::scenarios;
using namespace std::chrono_literals;

namespace {

/// Four nodes for 100 s, of which two end at 40 s.
netem::trace four_nodes() {
  netem::trace out;
  for (const auto* name : {"a", "b"}) out.add(name, {0s, 40s});
  for (const auto* name : {"c", "d"}) out.add(name, {0s, 100s});
  out.seen_until(100s);
  return out;
}

} // namespace

TEST_CASE("nodes that join greedily share themselves out among the stages") {
  // Stages 0 and 1 get a and c, and b and d. After 40 s each has one node.
  const auto seen = play_rebalancing(four_nodes(), 2, {stage_joins::greedy, {}}, 1);
  CHECK(seen.optimum == doctest::Approx(40 * 2 + 60));
  CHECK(seen.share() == doctest::Approx(1));
  CHECK(seen.moves == 0);
}

TEST_CASE("a move repairs what random joins have spoilt") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const auto still = play_rebalancing(four_nodes(), 2, {stage_joins::random, {}}, seed);
    const auto moved = play_rebalancing(four_nodes(), 2, {stage_joins::random, 10s}, seed);
    CHECK(moved.optimum == still.optimum);
    CHECK(moved.share() >= still.share());
    // Two moves balance four nodes, and one more balances the two that are left.
    CHECK(moved.throughput >= moved.optimum - 2 * 10 * 2 - 10);
  }
}

TEST_CASE("the calibrated utilization is met without latency and falls with the round trip") {
  const pipeline_layer narrow{.width = 768}, wide{.width = 12288};
  const auto compute = calibrated_seconds(narrow, 0.18);
  CHECK(utilization_at(narrow, compute, 0) == doctest::Approx(0.18));
  CHECK(utilization_at(narrow, compute, 0.1) < utilization_at(narrow, compute, 0.05));
  // A device of one speed is used better by wide layers, because flops grow faster than bits.
  const auto speed = forward_flops(narrow) / compute;
  CHECK(utilization_at(wide, forward_flops(wide) / speed, 0.01) >
        utilization_at(narrow, compute, 0.01));
  CHECK(transfer_seconds(wide) == doctest::Approx(16 * transfer_seconds(narrow)));
}
