// The random swarms of `shoal chaos` can be run.
#include "scenarios/chaos/chaos_case.hpp"
#include "scenarios/schema/load.hpp"
#include "tests/support/skip.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace shoal;
using namespace shoal::scenarios;

TEST_CASE("every drawn swarm is a valid scenario, with and without an attacker") {
  chaos_options honest, hostile, guarded;
  hostile.hostile = guarded.hostile = guarded.guarded = true;
  const std::uint64_t seeds = tries(300, 10'000);
  for (const auto& how : {honest, hostile, guarded})
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
      const auto yaml = draw_case(seed, how).yaml();
      const auto loaded = load_text(yaml, fmt::format("chaos-{}.yaml", seed));
      CHECK_MESSAGE(loaded.value, (loaded.errors.empty() ? yaml : render(loaded.errors.front())));
    }
}
