#include "actors/data/sample_ranges.hpp"

#include <doctest/doctest.h>

using namespace shoal;
using namespace shoal::actors;

TEST_CASE("a list of ranges from a message is refused unless it is ascending and disjoint") {
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

TEST_CASE("a range of more than 2^32 - 1 indices is split into several") {
  std::vector<sample_range> to{{0, 0xffff'fff0u}};
  append_range(to, 0xffff'fff0u, 0x2'0000'0000u);
  CHECK(to == std::vector<sample_range>{
                  {0, 0xffff'ffffu}, {0xffff'ffffu, 0xffff'ffffu}, {0x1'ffff'fffeu, 2}});
  CHECK(index_count(to) == 0x2'0000'0000u);
}
