#include "netem/index_lists.hpp"

#include <doctest/doctest.h>

#include <vector>

using namespace shoal::netem;

namespace {

std::vector<std::uint32_t> all(const index_lists& lists, std::uint32_t list) {
  std::vector<std::uint32_t> out;
  for (auto at = lists.first(list); at != index_lists::none; at = lists.next(at)) out.push_back(at);
  return out;
}

} // namespace

TEST_CASE("indices are removed from the front, the middle and the end of their list") {
  index_lists lists;
  for (std::uint32_t i = 0; i < 5; ++i) lists.push_front(3, i);
  lists.push_front(0, 9);
  using numbers = std::vector<std::uint32_t>;
  CHECK(all(lists, 3) == numbers{4, 3, 2, 1, 0});
  lists.remove(3, 2);
  lists.remove(3, 4);
  lists.remove(3, 0);
  CHECK(all(lists, 3) == numbers{3, 1});
  CHECK(all(lists, 0) == numbers{9});
  lists.push_front(0, 2);
  CHECK(all(lists, 0) == numbers{2, 9});
  lists.remove(3, 1);
  lists.remove(3, 3);
  CHECK(all(lists, 3).empty());
  CHECK(lists.first(1000) == index_lists::none);
}
