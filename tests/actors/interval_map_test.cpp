#include "actors/data/interval_map.hpp"
#include "actors/data/sample_ranges.hpp"
#include "kernels/base/rng.hpp"

#include <doctest/doctest.h>

#include <map>

using namespace shoal;
using namespace shoal::actors;

TEST_CASE("an interval map agrees with an array after random assignments and erasures") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    auto random = stream(seed, "interval_map_test");
    interval_map<int> map;
    std::vector<int> array(60, -1);
    for (int step = 0; step < 300; ++step) {
      const auto first = random.below(array.size());
      const auto end = first + random.below(array.size() - first + 1);
      const auto value = static_cast<int>(random.below(4)) - 1;
      if (value < 0)
        map.erase(first, end);
      else
        map.assign(first, end, value);
      for (auto i = first; i < end; ++i)
        array[i] = value;

      std::vector<int> seen(array.size(), -1);
      interval_map<int>::piece last;
      for (const auto& p : map.pieces()) {
        REQUIRE(p.first < p.end);
        REQUIRE(p.end <= seen.size());
        // Ascending, disjoint, and equal neighbours are one.
        REQUIRE(
            (p.first > last.end || p.first == 0 || (p.first == last.end && p.value != last.value)));
        for (auto i = p.first; i < p.end; ++i)
          seen[i] = p.value;
        last = p;
      }
      REQUIRE(seen == array);

      std::uint64_t inside = 0, expected = 0;
      for (const auto& p : map.pieces(first, end))
        inside += p.size();
      bool covered = true;
      for (auto i = first; i < end; ++i) {
        expected += array[i] >= 0;
        covered = covered && array[i] >= 0;
      }
      REQUIRE(inside == expected);
      REQUIRE(map.covers(first, end) == covered);
    }
  }
}

TEST_CASE("lists of ranges from messages are refused unless they are plain") {
  using list = std::vector<sample_range>;
  CHECK(*checked_ranges(list{{5, 2}, {0, 3}, {3, 2}}, 10) == list{{0, 7}});
  CHECK(*checked_ranges(list{}, 0) == list{});
  CHECK(*checked_ranges(list{{0xffff'ffff'ffff'fff0u, 15}}, 1) ==
        list{{0xffff'ffff'ffff'fff0u, 15}});
  CHECK_FALSE(checked_ranges(list{{0, 1}, {1, 1}}, 1));
  CHECK_FALSE(checked_ranges(list{{0, 0}}, 10));
  CHECK_FALSE(checked_ranges(list{{0, 2}, {1, 2}}, 10));
  CHECK_FALSE(checked_ranges(list{{4, 1}, {4, 1}}, 10));
  CHECK_FALSE(checked_ranges(list{{0xffff'ffff'ffff'fff0u, 16}}, 10));
  CHECK_FALSE(checked_ranges(list{{1, 0xffff'ffffu}, {7, 0xffff'ffffu}}, 10));
}

TEST_CASE("ranges of more than 2^32 - 1 indices become several") {
  std::vector<sample_range> to{{0, 0xffff'fff0u}};
  append_range(to, 0xffff'fff0u, 0x2'0000'0000u);
  CHECK(to == std::vector<sample_range>{
                  {0, 0xffff'ffffu}, {0xffff'ffffu, 0xffff'ffffu}, {0x1'ffff'fffeu, 2}});
  CHECK(index_count(to) == 0x2'0000'0000u);
}
