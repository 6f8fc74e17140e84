#include "kernels/learn/kv_cache.hpp"

#include <doctest/doctest.h>

using namespace shoal::learn;

TEST_CASE("a cache reserves the memory of its formula at once") {
  const kv_cache cache(5, 3, 100, 32);
  CHECK(cache.floats() == 2 * 5 * 3 * 100 * 32);
  CHECK(cache.length() == 0);
}

TEST_CASE("a cache refuses what does not fit and says why") {
  kv_cache cache(1, 2, 4, 8);
  CHECK(cache.append(4).ok());
  const auto full = cache.append(1);
  CHECK(!full.ok());
  CHECK(full.error() == "cache: 1 more tokens after 4 do not fit: it was reserved for 4");
  CHECK(cache.rollback(1).ok());
  CHECK(cache.length() == 1);
  CHECK(!cache.rollback(2).ok());
  const std::int64_t short_order[] = {0}, unknown[] = {0, 2};
  CHECK(!cache.reorder(short_order).ok());
  CHECK(!cache.reorder(unknown).ok());
}

TEST_CASE("reordering copies whole sequences") {
  kv_cache cache(2, 3, 2, 1);
  for (std::size_t l = 0; l < 2; ++l)
    for (std::size_t s = 0; s < 3; ++s) {
      *cache.keys(l, s) = static_cast<float>(10 * l + s);
      *cache.values(l, s) = static_cast<float>(100 + 10 * l + s);
    }
  const std::int64_t order[] = {2, 0, 2};
  REQUIRE(cache.reorder(order).ok());
  for (std::size_t l = 0; l < 2; ++l)
    for (std::size_t s = 0; s < 3; ++s) {
      CHECK(*cache.keys(l, s) == static_cast<float>(10 * l + static_cast<std::size_t>(order[s])));
      CHECK(*cache.values(l, s) ==
            static_cast<float>(100 + 10 * l + static_cast<std::size_t>(order[s])));
    }
}
