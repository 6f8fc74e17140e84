#include "kernels/base/rng.hpp"
#include "kernels/base/stats.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>
#include <set>
#include <vector>

using namespace shoal;

TEST_CASE("the generator gives the published numbers of xoshiro256**") {
  // Computed independently from the papers' formulas.
  rng zero(0);
  for (const std::uint64_t expected :
       {0x99ec5f36cb75f2b4U, 0xbf6e1f784956452aU, 0x1a5f849d4933e6e0U, 0x6aa594f1262d2d2cU})
    CHECK(zero.next() == expected);
  rng answer(42);
  for (const std::uint64_t expected :
       {0x15780b2e0c2ec716U, 0x6104d9866d113a7eU, 0xae17533239e499a1U, 0xecb8ad4703b360a1U})
    CHECK(answer.next() == expected);
}

TEST_CASE("named streams give the same numbers for ever") {
  rng empty = stream(0, "");
  CHECK(empty.next() == 0x53d0f039176786d1U);
  rng churn = stream(7, "churn", 3);
  CHECK(churn.next() == 0x9eeef29235d91c2aU);
  CHECK(churn.next() == 0x726fa00c15ac4afeU);
  rng pair = stream(7, "churn", 3, 1);
  CHECK(pair.next() == 0xa333f969edd337deU);
}

TEST_CASE("streams go on with the numbers of another seed when their branch is reached") {
  branch_point later{9}, first{7, false, &later};
  rng plain = stream(1, "a"), branched = stream({1, &first}, "a");
  for (int i = 0; i < 3; ++i) CHECK(branched.next() == plain.next());
  rng copy = branched;
  first.reached = true;
  // Copies go on alike.
  const auto turned = branched.next();
  CHECK(turned != plain.next());
  CHECK(copy.next() == turned);
  // A stream that begins later has passed the branch, too, and other names have other numbers.
  rng unbranched = stream(1, "b"), begun = stream({1, &first}, "b");
  const auto of_b = begun.next();
  CHECK(of_b != unbranched.next());
  CHECK(of_b != turned);
  // Another seed gives another future.
  branch_point other{8, true};
  CHECK(stream({1, &other}, "b").next() != of_b);
  // The second branch comes after the first.
  const auto without = rng(copy).next();
  later.reached = true;
  const auto twice = branched.next();
  CHECK(twice != without);
  CHECK(copy.next() == twice);
}

TEST_CASE("a stream whose branch is never reached is the stream of its seed") {
  branch_point never{7};
  rng plain = stream(1, "a"), branched = stream({1, &never}, "a");
  for (int i = 0; i < 100; ++i) CHECK(branched.normal() == plain.normal());
}

TEST_CASE("streams that differ in any argument differ") {
  std::set<std::uint64_t> firsts;
  std::size_t count = 0;
  for (std::uint64_t seed = 0; seed < 4; ++seed)
    for (const char* name : {"churn", "data", "a", "b", ""})
      for (std::uint64_t a = 0; a < 20; ++a)
        for (std::uint64_t b = 0; b < 20; ++b, ++count)
          firsts.insert(stream(seed, name, a, b).next());
  CHECK(firsts.size() == count);
}

TEST_CASE("distributions give the same bits for ever") {
  CHECK(rng(42).uniform() == 0.08386297105988216);
  CHECK(rng(42).uniform(-1, 1) == -1 + 2 * 0.08386297105988216);
  // Within one unit in the last place of the exact values (computed with 50 digits).
  CHECK(rng(42).normal() == -0x1.368a97c38507dp-2);
  CHECK(rng(42).exponential(1) == 0x1.66c411e559569p-4);
  CHECK(rng(42).weibull(2, 3) == 0x1.c696386ba9d78p-1);
  CHECK(rng(42).lognormal(0.5, 0.25) == 0x1.87417efce83c6p+0);
  rng dice(42);
  for (const std::uint64_t expected : {0, 3, 6, 9, 9, 7, 7, 8, 7, 5})
    CHECK(dice.below(10) == expected);
}

TEST_CASE("a shuffle is a permutation that the seed determines") {
  std::vector<int> items(100);
  std::iota(items.begin(), items.end(), 0);
  std::vector<int> again = items;
  const std::vector<int> before = items;
  rng(5).shuffle(std::span(items));
  rng(5).shuffle(std::span(again));
  CHECK(items == again);
  CHECK(items != before);
  std::sort(items.begin(), items.end());
  CHECK(items == before);
  std::vector<int> nothing;
  rng(5).shuffle(std::span(nothing));
}

TEST_CASE("below is uniform, also where a modulus would be biased") {
  rng random(6);
  std::array<int, 3> counts{};
  const std::uint64_t n = 3ULL << 62; // x % n would fall into the first third half of the time
  for (int i = 0; i < 30000; ++i) ++counts[random.below(n) >> 62];
  for (const int count : counts) CHECK(std::abs(count - 10000) < 400);
  for (int i = 0; i < 100; ++i) CHECK(random.below(1) == 0);
}

TEST_CASE("distributions have their means and variances") {
  constexpr int n = 200000;
  const auto draw = [](auto&& distribution) {
    std::vector<double> out(n);
    rng random(7);
    for (double& x : out) x = distribution(random);
    return out;
  };
  const auto uniform = draw([](rng& r) { return r.uniform(); });
  CHECK(mean(uniform) == doctest::Approx(0.5).epsilon(0.01));
  CHECK(variance(uniform) == doctest::Approx(1.0 / 12).epsilon(0.01));
  CHECK(*std::min_element(uniform.begin(), uniform.end()) >= 0);
  CHECK(*std::max_element(uniform.begin(), uniform.end()) < 1);
  const auto normal = draw([](rng& r) { return r.normal(3, 2); });
  CHECK(mean(normal) == doctest::Approx(3).epsilon(0.01));
  CHECK(variance(normal) == doctest::Approx(4).epsilon(0.02));
  CHECK(quantile(normal, 0.975) == doctest::Approx(3 + 2 * 1.959964).epsilon(0.01));
  const auto exponential = draw([](rng& r) { return r.exponential(5); });
  CHECK(mean(exponential) == doctest::Approx(5).epsilon(0.02));
  CHECK(median(exponential) == doctest::Approx(5 * std::log(2.0)).epsilon(0.02));
  const auto weibull = draw([](rng& r) { return r.weibull(0.7, 2); });
  CHECK(mean(weibull) == doctest::Approx(2 * std::tgamma(1 + 1 / 0.7)).epsilon(0.02));
  const auto lognormal = draw([](rng& r) { return r.lognormal(1, 0.5); });
  CHECK(median(lognormal) == doctest::Approx(std::exp(1.0)).epsilon(0.02));
  CHECK(mean(lognormal) == doctest::Approx(std::exp(1.125)).epsilon(0.02));
}

TEST_CASE("normals gives the same bits as that many calls of normal") {
  for (const std::size_t count : {0, 1, 2, 127, 128, 129, 1'000'000}) {
    rng one = stream(11, "normals", count), many = one;
    std::vector<double> expected(count), actual(count, 7);
    for (auto& z : expected) z = one.normal();
    many.normals(actual);
    CHECK((count == 0 || std::memcmp(expected.data(), actual.data(), count * sizeof(double)) == 0));
    CHECK(one.next() == many.next());
    rng again = stream(11, "normals", count);
    std::size_t next = 0;
    again.for_each_normal(count, [&](std::size_t i, double z) {
      REQUIRE(i == next++);
      if (z != expected[i]) FAIL_CHECK("the " << i << "th is another");
    });
    CHECK(next == count);
  }
}
