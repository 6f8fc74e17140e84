#include "kernels/base/rng.hpp"
#include "scenarios/observe/interval_map.hpp"

#include <doctest/doctest.h>

#include <array>

using shoal::scenarios::interval_map;

TEST_CASE("an interval map agrees with an array under random changes and merges equal neighbours") {
  constexpr std::uint64_t size = 64;
  interval_map<int> map;
  std::array<int, size> plain{};
  shoal::rng draw(7);
  for (int step = 0; step < 4000; ++step) {
    std::uint64_t begin = draw.below(size), end = draw.below(size + 1);
    if (begin > end)
      std::swap(begin, end);
    const int value = static_cast<int>(draw.below(3));
    if (step % 2 == 0) {
      map.assign(begin, end, value);
      for (std::uint64_t i = begin; i < end; ++i)
        plain[i] = value;
    } else {
      map.update(begin, end, [](std::uint64_t, std::uint64_t, int& v) { v = (v + 1) % 3; });
      for (std::uint64_t i = begin; i < end; ++i)
        plain[i] = (plain[i] + 1) % 3;
    }
    std::uint64_t at = 0;
    bool same = true;
    map.visit(0, size, [&](std::uint64_t b, std::uint64_t e, int v) {
      same = same && b == at && b < e;
      for (std::uint64_t i = b; i < e; ++i)
        same = same && plain[i] == v && map.at(i) == v;
      at = e;
    });
    REQUIRE(same);
    REQUIRE(at == size);
    std::size_t pieces = 0;
    for (std::uint64_t i = 0; i < size; ++i)
      if (plain[i] != 0 && (i == 0 || plain[i - 1] != plain[i]))
        ++pieces;
    REQUIRE(map.pieces() == pieces);
  }
}
