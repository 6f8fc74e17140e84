#include "kernels/base/rng.hpp"
#include "scenarios/page/time_bins.hpp"

#include <doctest/doctest.h>

using namespace shoal;
using namespace shoal::scenarios;

TEST_CASE("wider bins have the sums of the narrow ones, whenever they got wider") {
  // The same spans, once with an axis that grows as they come and once with one that had grown
  // before.
  constexpr std::int64_t last = 3'600'000'000'000;
  rng draws = stream(1, "test");
  time_axis growing, grown;
  grown.reach(last);
  time_bins<2> a, b;
  std::int64_t sum = 0, t = 0;
  while (t < last) {
    const std::int64_t to =
        std::min<std::int64_t>(last, t + 1 + static_cast<std::int64_t>(draws.uniform() * 20e9));
    const auto value = static_cast<std::int64_t>(draws.uniform() * 1e6);
    for (unsigned i = growing.reach(to); i > 0; --i) a.widen();
    a.spread(growing, t, to, 1, value);
    b.spread(grown, t, to, 1, value);
    sum += value;
    t = to;
  }
  for (unsigned i = growing.reach(last); i > 0; --i) a.widen();
  REQUIRE(growing.width() == grown.width());
  std::int64_t found = 0;
  for (std::size_t i = 0; i < time_axis::bins; ++i) {
    CHECK(a.get(i, 1) == b.get(i, 1));
    CHECK(a.get(i, 0) == 0);
    found += a.get(i, 1);
  }
  CHECK(found == sum);
  CHECK(growing.used() > time_axis::bins / 2);
}

TEST_CASE("an event without a duration is in the bin of its moment") {
  time_axis axis;
  time_bins<1> bins;
  axis.reach(35'000'000);
  bins.spread(axis, 30'000'000, 30'000'000, 0, 7);
  CHECK(bins.get(3, 0) == 7);
}
