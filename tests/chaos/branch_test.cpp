// A run that stops at any moment goes on as if it had not stopped. A branch has the same past, and
// with another seed another future. The scenarios are those of chaos: every method, model, fault,
// address translation and failpoint is in one of them.
#include "kernels/base/rng.hpp"
#include "scenarios/chaos/chaos_case.hpp"
#include "tests/e2e/support/swarm.hpp"
#include "tests/support/skip.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <chrono>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

using namespace shoal;
using namespace shoal::scenarios;

namespace {

struct history {
  std::string hash;
  double seconds = 0;
  std::vector<run_moment> moments;
};

history run(const std::string& yaml, std::vector<duration> moments,
            std::vector<run_branch> branches = {}) {
  history out;
  runner_options options;
  options.moments = std::move(moments);
  options.branches = std::move(branches);
  options.on_moment = [&](const run_moment& seen) { out.moments.push_back(seen); };
  const auto done = e2e::run_yaml(yaml, 0, std::move(options));
  out.hash = done.summary().event_hash.value();
  out.seconds = done.summary().virtual_seconds;
  return out;
}

std::string short_case(std::uint64_t seed) {
  chaos_options how;
  how.length = std::chrono::minutes(8);
  return draw_case(seed, how).yaml();
}

} // namespace

TEST_CASE("a run continues from any moment with the same event hash, and branches from there") {
  const std::size_t scenarios = tries(5, 20), moments_each = tries(3, 50);
  std::size_t moments = 0, branches = 0, others = 0;
  for (std::uint64_t number = 1; number <= scenarios; ++number) {
    const auto yaml = short_case(number);
    const auto whole = run(yaml, {});
    auto draws = stream(number, "moments");
    for (std::size_t i = 0; i < moments_each; ++i) {
      const auto at = from_seconds(draws.uniform() * whole.seconds);
      INFO(fmt::format("scenario {} at {} ns", number, at.count()));
      const auto continued = run(yaml, {at});
      REQUIRE(continued.moments.size() == 1);
      CHECK(continued.hash == whole.hash);
      ++moments;
      if (i % 5 != 0) continue;
      const auto branched = run(yaml, {}, {{at, 7}});
      REQUIRE(branched.moments.size() == 1);
      CHECK(branched.moments[0].event_hash == continued.moments[0].event_hash);
      CHECK(branched.moments[0].events == continued.moments[0].events);
      ++branches;
      if (branched.hash != whole.hash) ++others;
    }
  }
  MESSAGE(moments << " moments of " << scenarios << " scenarios continued; " << others << " of "
                  << branches << " branches had another future");
  // A branch just before the end may have nothing left to draw.
  CHECK(others * 10 >= branches * 9);
}

TEST_CASE("a branch is one history, and a branch of a branch continues it") {
  const auto yaml = short_case(2);
  const auto whole = run(yaml, {});
  const auto first = from_seconds(whole.seconds / 4), second = from_seconds(whole.seconds / 2);
  const auto seven = run(yaml, {second}, {{first, 7}});
  CHECK(seven.hash != whole.hash);
  CHECK(run(yaml, {}, {{first, 7}}).hash == seven.hash);
  CHECK(run(yaml, {}, {{first, 8}}).hash != seven.hash);
  const auto nine = run(yaml, {}, {{first, 7}, {second, 9}});
  REQUIRE(nine.moments.size() == 2);
  REQUIRE(seven.moments.size() == 2);
  CHECK(nine.moments[1].event_hash == seven.moments[1].event_hash);
  CHECK(nine.hash != seven.hash);
}

TEST_CASE("a branch at time zero has another future, and one after the end has none") {
  const auto yaml = short_case(3);
  const auto whole = run(yaml, {});
  CHECK(run(yaml, {}, {{duration{}, 7}}).hash != whole.hash);
  const auto late = run(yaml, {}, {{from_seconds(whole.seconds + 3600), 7}});
  CHECK(late.hash == whole.hash);
  CHECK(late.moments.empty());
}

TEST_CASE("only a run in virtual time can branch") {
  runner_options options;
  options.branches = {{std::chrono::seconds(1), 7}};
  CHECK_THROWS_WITH(e2e::run_yaml(short_case(1) + "world: emulate\n", 0, std::move(options)),
                    "world emulate is on the wall clock: only a run in sim repeats exactly, so "
                    "only that can branch");
}
