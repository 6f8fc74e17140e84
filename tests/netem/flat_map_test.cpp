#include "kernels/base/rng.hpp"
#include "netem/flat_map.hpp"

#include <doctest/doctest.h>

#include <unordered_map>

using namespace shoal;
using namespace shoal::netem;

TEST_CASE("a flat map equals a standard map through insertions and erasures and sweeps") {
  flat_map<std::uint64_t> map;
  std::unordered_map<std::uint64_t, std::uint64_t> reference;
  auto draws = stream(1, "flat_map_test");
  CHECK(map.find(1) == nullptr);
  CHECK_FALSE(map.erase(1));
  for (int step = 0; step < 200'000; ++step) {
    // Few keys are used, and some differ in the upper half only, as pairs of hosts do.
    auto key = draws.below(600) | draws.below(3) << 32;
    switch (draws.below(5)) {
    case 0:
    case 1:
      reference[key] = map[key] = static_cast<std::uint64_t>(step);
      break;
    case 2:
    case 3:
      CHECK(map.erase(key) == (reference.erase(key) == 1));
      break;
    default: {
      auto* found = map.find(key);
      auto expected = reference.find(key);
      CHECK((found != nullptr) == (expected != reference.end()));
      if (found != nullptr) CHECK(*found == expected->second);
    }
    }
    if (step % 5000 == 4999) {
      auto old = [&](std::uint64_t, std::uint64_t value) {
        return value + 2000 < static_cast<std::uint64_t>(step);
      };
      map.erase_if(old);
      std::erase_if(reference, [&](auto& entry) { return old(entry.first, entry.second); });
    }
    CHECK(map.size() == reference.size());
  }
  for (auto& [key, value] : reference) {
    REQUIRE(map.find(key) != nullptr);
    CHECK(*map.find(key) == value);
  }
}
