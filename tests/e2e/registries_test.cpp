// Aggregators and conducts that a scenario names: from the file to the members of a round and to
// the observers.
#include "tests/actors/support/test_aggregators.hpp"
#include "tests/e2e/support/swarm.hpp"

#include <doctest/doctest.h>

using namespace shoal;
using namespace shoal::e2e;

namespace {

/// The slow one reduces nothing, so that only its own values are missing when it dies half-way.
swarm with_a_partial_round() {
  swarm what;
  what.late = "  slow: {count: 1, up: 100kbit, down: 40Mbit, device: fast}\n";
  what.faults = {"{kill: process, select: slow-0, on: all_reduce.half_sent, nth: 2}"};
  return what;
}

} // namespace

TEST_CASE("a scenario names an aggregator by part, members end partial rounds with it, and "
          "mass_conserved holds by its own check") {
  for (const auto* which :
       {&actors::testing::test_median(), &actors::testing::test_middle_norm()}) {
    auto what = with_a_partial_round();
    what.averaging = ", aggregator: " + which->name;
    const auto run = run_swarm(what);
    for (const auto& error : run.errors) FAIL_CHECK(which->name << ": " << error);
    CHECK(run.summary().rounds.partial >= 1);
    CHECK(rule(run.summary(), "mass_conserved").checked > 0);
    CHECK(rule(run.summary(), "mass_conserved").violated == 0);
  }
}

TEST_CASE("mass_conserved finds a reducer that changes what its aggregator made") {
  auto what = with_a_partial_round();
  what.averaging = ", aggregator: " + actors::testing::test_median().name;
  scenarios::runner_options options;
  options.conduct = "divide_by_peers";
  CHECK(rule(run_swarm(what, std::move(options)).summary(), "mass_conserved").violated > 0);
}

TEST_CASE("a scenario gives a conduct to one group of hosts, and runner_options gives one to all") {
  swarm what;
  what.late =
      "  forgetful: {count: 1, up: 1Mbit, down: 40Mbit, device: fast, conduct: lost_sample}\n";
  CHECK(rule(run_swarm(what).summary(), "samples_counted").violated > 0);
  scenarios::runner_options options;
  options.conduct = "honest";
  CHECK(run_swarm(what, std::move(options)).errors.empty());
}
