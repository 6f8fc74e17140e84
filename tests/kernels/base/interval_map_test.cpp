#include "kernels/base/interval_map.hpp"
#include "kernels/base/rng.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

using namespace shoal;

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
      for (auto i = first; i < end; ++i) array[i] = value;

      std::vector<int> seen(array.size(), -1);
      interval_map<int>::piece last;
      for (const auto& p : map.pieces()) {
        REQUIRE(p.first < p.end);
        REQUIRE(p.end <= seen.size());
        // The pieces ascend, are disjoint, and no neighbours are equal.
        REQUIRE(
            (p.first > last.end || p.first == 0 || (p.first == last.end && p.value != last.value)));
        for (auto i = p.first; i < p.end; ++i) seen[i] = p.value;
        last = p;
      }
      REQUIRE(seen == array);

      std::uint64_t inside = 0, expected = 0;
      for (const auto& p : map.pieces(first, end)) inside += p.size();
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

TEST_CASE("an interval map with gaps as zeros agrees with an array under random changes") {
  constexpr std::uint64_t size = 64;
  interval_map<int> map;
  std::array<int, size> plain{};
  rng draw(7);
  for (int step = 0; step < 4000; ++step) {
    std::uint64_t begin = draw.below(size), end = draw.below(size + 1);
    if (begin > end) std::swap(begin, end);
    const int value = static_cast<int>(draw.below(3));
    if (step % 2 == 0) {
      if (value == 0)
        map.erase(begin, end);
      else
        map.assign(begin, end, value);
      for (std::uint64_t i = begin; i < end; ++i) plain[i] = value;
    } else {
      map.update(begin, end, [](std::uint64_t, std::uint64_t, int& v) { v = (v + 1) % 3; });
      for (std::uint64_t i = begin; i < end; ++i) plain[i] = (plain[i] + 1) % 3;
    }
    std::uint64_t at = 0;
    bool same = true;
    map.visit(0, size, [&](std::uint64_t b, std::uint64_t e, int v) {
      same = same && b == at && b < e;
      for (std::uint64_t i = b; i < e; ++i) same = same && plain[i] == v && map.at(i) == v;
      at = e;
    });
    REQUIRE(same);
    REQUIRE(at == size);
    std::size_t pieces = 0;
    for (std::uint64_t i = 0; i < size; ++i)
      if (plain[i] != 0 && (i == 0 || plain[i - 1] != plain[i])) ++pieces;
    REQUIRE(map.piece_count() == pieces);
    if (pieces == 0) continue;
    REQUIRE(plain[map.front().first] != 0);
    REQUIRE(std::all_of(plain.begin(), plain.begin() + map.front().first,
                        [](int v) { return v == 0; }));
    REQUIRE(plain[map.back().end - 1] != 0);
    REQUIRE(std::all_of(plain.begin() + map.back().end, plain.end(), [](int v) { return v == 0; }));
  }
}

TEST_CASE("a scan of a part of an interval map sees its pieces cut at its ends") {
  interval_map<int> map;
  map.assign(10, 20, 1);
  map.assign(20, 30, 2);
  map.assign(40, 50, 0); // an explicit zero is stored, too
  CHECK(map.piece_count() == 3);
  std::vector<std::array<std::uint64_t, 3>> seen;
  map.visit(15, 45, [&](std::uint64_t b, std::uint64_t e, int v) {
    seen.push_back({b, e, static_cast<std::uint64_t>(v)});
  });
  CHECK(seen == std::vector<std::array<std::uint64_t, 3>>{
                    {15, 20, 1}, {20, 30, 2}, {30, 40, 0}, {40, 45, 0}});
  map.update(35, 45, [](std::uint64_t, std::uint64_t, int&) {});
  CHECK(map.piece_count() == 3); // only the end of [40, 50) is left
  CHECK(map.back().first == 45);
}

TEST_CASE("an interval set knows its gaps") {
  interval_set set;
  set.insert(5, 10);
  set.insert(10, 12);
  set.insert(20, 21);
  CHECK(set.piece_count() == 2);
  CHECK(set.covers(5, 12));
  CHECK_FALSE(set.covers(5, 13));
  const auto gaps = set.missing(0, 30);
  REQUIRE(gaps.size() == 3);
  CHECK(gaps[0].end == 5);
  CHECK(gaps[1].first == 12);
  CHECK(gaps[2].first == 21);
}
