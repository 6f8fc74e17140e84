// kernels/learn/pictures/moving_codes and nearest_entry.
#include "kernels/base/rng.hpp"
#include "kernels/learn/pictures/moving_codes.hpp"
#include "kernels/learn/pictures/nearest_entry.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

using namespace shoal;
using namespace shoal::learn;

TEST_CASE("entries follow the vectors of their code by the formula of appendix A.1") {
  auto random = stream(1, "moving_codes_test");
  const std::vector<float> start{0, 0, 1, 1, -1, 2};
  moving_codes codes(start, 2, 0.9, 0);
  std::vector<double> n(3, 1.0), m(start.begin(), start.end());
  for (int step = 0; step < 20; ++step) {
    std::vector<float> vectors;
    std::vector<token_id> chosen;
    for (int i = 0; i < 7; ++i) {
      vectors.push_back(static_cast<float>(random.normal()));
      vectors.push_back(static_cast<float>(random.normal()));
      chosen.push_back(static_cast<token_id>(random.below(2))); // never the code 2
    }
    codes.update(vectors, chosen, random);
    for (std::size_t k = 0; k < 3; ++k) {
      double count = 0, sum[2] = {0, 0};
      for (std::size_t i = 0; i < 7; ++i)
        if (static_cast<std::size_t>(chosen[i]) == k) {
          ++count;
          for (std::size_t j = 0; j < 2; ++j) sum[j] += static_cast<double>(vectors[2 * i + j]);
        }
      n[k] = 0.9 * n[k] + 0.1 * count;
      for (std::size_t j = 0; j < 2; ++j) {
        m[2 * k + j] = 0.9 * m[2 * k + j] + 0.1 * sum[j];
        CHECK(static_cast<double>(codes.entries()[2 * k + j]) ==
              doctest::Approx(m[2 * k + j] / n[k]).epsilon(1e-5));
      }
    }
  }
  // No vector moved it.
  CHECK(codes.entries()[4] == doctest::Approx(-1));
  CHECK(codes.entries()[5] == doctest::Approx(2));
}

TEST_CASE("an entry that no vector uses becomes a vector that is far from its own entry") {
  auto random = stream(2, "moving_codes_test");
  moving_codes codes({0, 100}, 1, 0.5, 0.1);
  // Each time half of the vectors lie at their entry, and one lies 5 away.
  const std::vector<float> vectors{0, 0, 5, 0};
  const std::vector<token_id> all_first{0, 0, 0, 0};
  for (int step = 0; step < 3; ++step) {
    codes.update(vectors, all_first, random); // n_1 = 0.5, 0.25, 0.125
    CHECK(codes.reseeded() == 0);
    CHECK(codes.entries()[1] == doctest::Approx(100));
  }
  codes.update(vectors, all_first, random);
  CHECK(codes.reseeded() == 1);
  CHECK(codes.entries()[1] == 5);
  // The entry lives on with the vectors near to it.
  codes.update(vectors, std::vector<token_id>{0, 0, 1, 0}, random);
  CHECK(codes.reseeded() == 1);
  CHECK(codes.entries()[1] == doctest::Approx(5));
}

TEST_CASE("a dead entry finds a vector where all vectors are equal") {
  auto random = stream(3, "moving_codes_test");
  moving_codes codes({1, 7}, 1, 0.1, 0.5);
  codes.update(std::vector<float>{1, 1}, std::vector<token_id>{0, 0}, random);
  CHECK(codes.reseeded() == 1);
  CHECK(codes.entries() == std::vector<float>{1, 1});
}

TEST_CASE("the nearest entry is the first of those that are equally near") {
  const std::vector<float> entries{0, 0, 2, 0, 0, 2, 2, 0};
  nearest_entry nearest(entries, 2);
  const float near_second[] = {1.5F, 0.1F}, middle[] = {0, 1};
  CHECK(nearest.find(near_second) == 1);
  CHECK(nearest.find(middle) == 0);
}

TEST_CASE("spread entries are different vectors as long as there are any") {
  auto random = stream(4, "moving_codes_test");
  const std::vector<float> vectors{1, 1, 1, 2, 3, 3};
  const std::vector<double> weights(6, 1.0);
  auto three = spread_entries(vectors, weights, 1, 3, random);
  std::sort(three.begin(), three.end());
  CHECK(three == std::vector<float>{1, 2, 3});
  CHECK(spread_entries(vectors, weights, 1, 5, random).size() == 5);
}
