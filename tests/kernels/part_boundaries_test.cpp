#include "kernels/base/rng.hpp"
#include "kernels/part_boundaries.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

using namespace shoal;
using namespace shoal::kernels;

using offsets = std::vector<std::uint64_t>;
using shares = std::vector<double>;

TEST_CASE("equal shares differ by at most one element, and the first parts are larger") {
  CHECK(part_boundaries(8, equal_shares(4)) == offsets{0, 2, 4, 6, 8});
  CHECK(part_boundaries(7, equal_shares(3)) == offsets{0, 3, 5, 7});
  CHECK(part_boundaries(1, equal_shares(3)) == offsets{0, 1, 1, 1});
  CHECK(part_boundaries(64, equal_shares(1)) == offsets{0, 64});
  CHECK(part_boundaries(0, equal_shares(3)) == offsets{0, 0, 0, 0});
}

TEST_CASE("the remaining elements go to the largest remainders") {
  // The quotas are 4.7, 2.4, 2.9, so the two remaining elements go to the third and the first part.
  CHECK(part_boundaries(10, shares{47, 24, 29}) == offsets{0, 5, 7, 10});
  // The quotas are 0.5, 0.5, 9: a tie, which the lower index wins.
  CHECK(part_boundaries(10, shares{1, 1, 18}) == offsets{0, 1, 1, 10});
  CHECK(part_boundaries(100, shares{0.1, 0.2, 0.7}) == offsets{0, 10, 30, 100});
}

TEST_CASE("a share of zero is an empty part") {
  CHECK(part_boundaries(7, shares{0, 1, 0, 1, 0}) == offsets{0, 0, 4, 4, 7, 7});
  CHECK(part_boundaries(10, shares{0, 3}, 4) == offsets{0, 0, 10});
  CHECK(part_boundaries(10, shares{3, 0}, 4) == offsets{0, 10, 10});
}

TEST_CASE("aligned parts begin at multiples, and only the end is ragged") {
  CHECK(part_boundaries(70, equal_shares(2), 64) == offsets{0, 64, 70});
  CHECK(part_boundaries(63, equal_shares(2), 64) == offsets{0, 63, 63});
  CHECK(part_boundaries(1000, shares{1, 2, 1}, 64) == offsets{0, 256, 768, 1000});
  CHECK(part_boundaries(3, equal_shares(2), 1000) == offsets{0, 3, 3});
}

TEST_CASE("lengths and shares at the limits of their types are cut exactly") {
  constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  CHECK(part_boundaries(most, equal_shares(2)) == offsets{0, 1ULL << 63, most});
  CHECK(part_boundaries(most, equal_shares(1), 1ULL << 40).back() == most);
  CHECK(part_boundaries(4, shares{1.7e308, 1.7e308}) == offsets{0, 2, 4});
  CHECK(part_boundaries(4, shares{5e-324, 5e-324}) == offsets{0, 2, 4});
  CHECK(part_boundaries(4, shares{5e-324, 1.7e308}) == offsets{0, 0, 4});
}

TEST_CASE("shares that cannot be used are recognized") {
  CHECK(valid_shares(shares{0, 1}));
  CHECK_FALSE(valid_shares(shares{}));
  CHECK_FALSE(valid_shares(shares{0, 0}));
  CHECK_FALSE(valid_shares(shares{1, -1}));
  CHECK_FALSE(valid_shares(shares{1, std::nan("")}));
  CHECK_FALSE(valid_shares(shares{1, std::numeric_limits<double>::infinity()}));
}

TEST_CASE("random parts cover the vector and stay within a block of their quota") {
  rng random = stream(4, "boundaries");
  for (int round = 0; round < 3000; ++round) {
    const std::uint64_t length = random.next() >> (20 + random.below(44));
    const std::uint64_t align = random.below(2) == 0 ? 1 : 1 + random.below(100);
    shares given(1 + random.below(40));
    for (double& share : given) share = random.below(4) == 0 ? 0 : random.lognormal(0, 2);
    given[random.below(given.size())] = 1;
    double sum = 0;
    for (const double share : given) sum += share;

    const offsets cuts = part_boundaries(length, given, align);
    REQUIRE(cuts.size() == given.size() + 1);
    REQUIRE(cuts.front() == 0);
    REQUIRE(cuts.back() == length);
    for (std::size_t i = 0; i < given.size(); ++i) {
      REQUIRE(cuts[i] <= cuts[i + 1]);
      REQUIRE((cuts[i] % align == 0 || cuts[i] == length));
      const double size = static_cast<double>(cuts[i + 1] - cuts[i]);
      const double blocks = std::ceil(static_cast<double>(length) / static_cast<double>(align));
      const double quota = given[i] / sum * blocks * static_cast<double>(align);
      // The last part with an element ends where the vector does, up to a block early.
      const double slack = static_cast<double>(align) * (cuts[i + 1] == length ? 2 : 1);
      REQUIRE(std::fabs(size - quota) <= slack + 1e-9 * quota);
      if (given[i] == 0) REQUIRE(cuts[i] == cuts[i + 1]);
    }
    // The result depends only on ratios, and powers of two scale exactly.
    shares scaled = given;
    for (double& share : scaled) share *= 1024;
    REQUIRE(part_boundaries(length, scaled, align) == cuts);
  }
}
