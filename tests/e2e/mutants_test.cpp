// Deliberate bugs: each has to be caught by an invariant or by the hash of history, else these
// checks show nothing.
#include "tests/e2e/support/swarm.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <set>
#include <vector>

using namespace shoal;
using namespace shoal::e2e;

namespace {

/// The slow one reduces nothing, so when it dies half-way nobody's part is lost with it, only its
/// own weight.
swarm with_a_partial_round() {
  swarm what;
  what.late = "  slow: {count: 1, up: 100kbit, down: 40Mbit, device: fast}\n";
  what.faults = {"{kill: process, select: slow-0, on: all_reduce.half_sent, nth: 2}"};
  return what;
}

scenarios::summary run_mutant(const swarm& what, const std::string& conduct) {
  scenarios::runner_options options;
  options.conduct = conduct;
  return run_swarm(what, std::move(options)).summary();
}

} // namespace

TEST_CASE("the swarm that the mutants are tried on is fine without them and has a partial round") {
  auto run = run_swarm(with_a_partial_round());
  CHECK(run.errors.empty());
  CHECK(run.summary().rounds.partial >= 1);
  for (const auto& [name, totals] : run.summary().invariants) {
    INFO(name);
    CHECK(totals.checked > 0);
  }
}

TEST_CASE("a reducer that divides by the whole group's weight breaks mass_conserved") {
  auto summary = run_mutant(with_a_partial_round(), "wrong_denominator");
  CHECK(rule(summary, "mass_conserved").violated > 0);
  CHECK(rule(summary, "samples_counted").violated == 0);
}

TEST_CASE("a peer that loses a sample breaks samples_counted") {
  auto summary = run_mutant(with_a_partial_round(), "lost_sample");
  CHECK(rule(summary, "samples_counted").violated > 0);
}

TEST_CASE("equal weights break mass_conserved") {
  auto summary = run_mutant(with_a_partial_round(), "equal_weights");
  CHECK(rule(summary, "mass_conserved").violated > 0);
}

TEST_CASE("dividing by peers instead of samples breaks mass_conserved") {
  auto summary = run_mutant(with_a_partial_round(), "divide_by_peers");
  CHECK(rule(summary, "mass_conserved").violated > 0);
}

TEST_CASE("peers in the order of their memory addresses change the event hash between runs") {
  auto hashes = [](const std::string& conduct) {
    std::set<std::string> out;
    std::vector<std::unique_ptr<char[]>> kept;
    for (std::size_t run = 0; run < 4; ++run) {
      // Other addresses in each run, as between two processes.
      for (std::size_t i = 0; i < 300 * run; ++i)
        kept.push_back(std::make_unique<char[]>(16 + 40 * (i % 23)));
      swarm what;
      what.peers = 5;
      out.insert(run_mutant(what, conduct).event_hash.value());
    }
    return out.size();
  };
  CHECK(hashes("unordered_peers") > 1);
  CHECK(hashes("honest") == 1);
}
