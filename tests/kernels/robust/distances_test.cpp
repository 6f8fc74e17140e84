// The aggregators that compare whole contributions, against plain loops.
#include "kernels/robust/geometric_median.hpp"
#include "kernels/robust/krum.hpp"
#include "kernels/robust/pre_aggregation.hpp"
#include "kernels/robust/vector_passes.hpp"
#include "tests/kernels/robust/contributions.hpp"

#include <algorithm>
#include <numeric>

using namespace shoal;
using namespace shoal::kernels;
using namespace shoal::kernels::testing;

namespace {

using values = std::vector<double>;

double plain_square(const std::vector<float>& a, const std::vector<float>& b) {
  double out = 0;
  for (std::size_t j = 0; j < a.size(); ++j)
    out += (static_cast<double>(a[j]) - b[j]) * (static_cast<double>(a[j]) - b[j]);
  return out;
}

values plain_mean(const contributions& given, const std::vector<std::size_t>& of) {
  values out(given.size());
  double weight = 0;
  for (const auto i : of) weight += given.weights[i];
  for (const auto i : of)
    for (std::size_t j = 0; j < out.size(); ++j)
      out[j] += given.weights[i] / weight * given.values[i][j];
  return out;
}

/// The m contributions with the lowest Krum scores, by the definition.
std::vector<std::size_t> plain_krum(const contributions& given, std::size_t faulty,
                                    std::size_t chosen) {
  std::vector<std::pair<double, std::size_t>> scores;
  for (std::size_t i = 0; i < given.count(); ++i) {
    values squares;
    for (std::size_t j = 0; j < given.count(); ++j)
      if (j != i) squares.push_back(plain_square(given.values[i], given.values[j]));
    std::sort(squares.begin(), squares.end());
    const auto near = static_cast<std::ptrdiff_t>(given.count() - faulty - 2);
    scores.emplace_back(std::accumulate(squares.begin(), squares.begin() + near, 0.0), i);
  }
  std::sort(scores.begin(), scores.end());
  std::vector<std::size_t> out;
  for (std::size_t k = 0; k < chosen; ++k) out.push_back(scores[k].second);
  std::sort(out.begin(), out.end());
  return out;
}

double sum_of_distances(const contributions& given, const values& z) {
  double out = 0;
  for (std::size_t i = 0; i < given.count(); ++i) {
    double square = 0;
    for (std::size_t j = 0; j < z.size(); ++j)
      square += (given.values[i][j] - z[j]) * (given.values[i][j] - z[j]);
    out += given.weights[i] * std::sqrt(square);
  }
  return out;
}

} // namespace

TEST_CASE("distances and products of all pairs are those of plain loops") {
  rng random = stream(5, "pairs");
  for (const std::size_t size : {1, 7, 8, 64, 255, 256, 257, 1000})
    for (const std::size_t count : {1, 2, 4, 5, 9, 16}) {
      const auto given = random_contributions(random, count, size, count / 3);
      values center(size);
      for (auto& x : center) x = random.normal();
      const auto squares = squared_distances(given.view());
      const auto products = centered_products(given.view(), center);
      for (std::size_t i = 0; i < count; ++i)
        for (std::size_t k = 0; k < count; ++k) {
          CHECK(squares.at(i, k) ==
                doctest::Approx(plain_square(given.values[i], given.values[k])).epsilon(1e-13));
          double product = 0, lengths[2] = {};
          for (std::size_t j = 0; j < size; ++j) {
            const double a = given.values[i][j] - center[j], b = given.values[k][j] - center[j];
            product += a * b, lengths[0] += a * a, lengths[1] += b * b;
          }
          CHECK(std::abs(products.at(i, k) - product) <=
                1e-13 * std::sqrt(lengths[0] * lengths[1]));
        }
    }
}

TEST_CASE("Krum and multi-Krum choose what their definition says") {
  rng random = stream(6, "krum");
  for (const std::size_t size : {1, 7, 300})
    for (const auto& [count, faulty] :
         {std::pair<std::size_t, std::size_t>{5, 1}, {16, 3}, {16, 6}, {33, 10}}) {
      const auto given = random_contributions(random, count, size, faulty);
      const auto view = given.view();
      for (const auto chosen : {std::size_t{1}, std::size_t{3}, count - faulty}) {
        const auto expected = plain_krum(given, faulty, chosen);
        CHECK(lowest_krum_scores(view, faulty, chosen) == expected);
        // An outlier is never among them.
        CHECK(expected.back() < count - faulty);
        values out(size);
        multi_krum<double>(view, faulty, chosen, out);
        check_near(out, plain_mean(given, expected), 1e-12);
      }
    }
}

TEST_CASE("Krum takes a faulty contribution when more are faulty than it was told") {
  contributions given;
  for (int i = 0; i < 4; ++i) given.add({static_cast<float>(i)});
  for (int i = 0; i < 4; ++i) given.add({1e6F});
  CHECK(lowest_krum_scores(given.view(), 2, 1).front() >= 4);
}

TEST_CASE("no point near the geometric median has a lower sum of distances") {
  rng random = stream(7, "geometric");
  for (const std::size_t size : {1, 2, 7, 300})
    for (const std::size_t count : {1, 2, 3, 9, 16}) {
      CAPTURE(size);
      CAPTURE(count);
      const auto given = random_contributions(random, count, size, count / 4);
      values out(size);
      geometric_median<double>(given.view(), {},
                               {.smoothing = 1e-9, .iterations = 20000, .tolerance = 1e-13}, out);
      const double least = sum_of_distances(given, out);
      for (int k = 0; k < 20; ++k) {
        auto other = out;
        for (auto& x : other) x += 1e-3 * random.normal();
        CHECK(least <= sum_of_distances(given, other) * (1 + 1e-9));
      }
    }
}

TEST_CASE("the Weiszfeld iteration equals the plain one to 1e-12") {
  rng random = stream(8, "weiszfeld");
  const auto given = random_contributions(random, 9, 257, 2);
  values out(257), z(257);
  geometric_median<double>(given.view(), values(257), {.smoothing = 0.1, .iterations = 5}, out);
  for (int t = 0; t < 5; ++t) {
    values next(z.size());
    double all = 0;
    for (std::size_t i = 0; i < given.count(); ++i) {
      double square = 0;
      for (std::size_t j = 0; j < z.size(); ++j)
        square += (given.values[i][j] - z[j]) * (given.values[i][j] - z[j]);
      const double beta = given.weights[i] / std::max(0.1, std::sqrt(square));
      all += beta;
      for (std::size_t j = 0; j < z.size(); ++j) next[j] += beta * given.values[i][j];
    }
    for (std::size_t j = 0; j < z.size(); ++j) z[j] = next[j] / all;
  }
  check_near(out, z, 1e-12);
}

TEST_CASE("buckets hold each contribution once and the same names share one in every order") {
  rng random = stream(9, "buckets");
  const auto given = random_contributions(random, 7, 5);
  std::vector<std::uint64_t> names{10, 11, 12, 13, 14, 15, 16};
  const auto order = shuffled_order(names, 99);
  CHECK(shuffled_order(names, 99) == order);
  CHECK(shuffled_order(names, 100) != order);
  const auto made = buckets(given.view(), order, 3);
  REQUIRE(made.size() == 3);
  std::vector<std::size_t> all;
  for (const auto& one : made) {
    all.insert(all.end(), one.of.begin(), one.of.end());
    values out(5);
    mix<double>(given.view(), one, out);
    check_near(out, plain_mean(given, one.of), 1e-12);
  }
  std::sort(all.begin(), all.end());
  CHECK(all == std::vector<std::size_t>{0, 1, 2, 3, 4, 5, 6});
  // A member that is missing moves nobody past another.
  std::vector<std::uint64_t> without{10, 11, 12, 14, 15, 16};
  auto rest = shuffled_order(without, 99);
  std::vector<std::uint64_t> in_order, left;
  for (const auto i : order)
    if (names[i] != 13) in_order.push_back(names[i]);
  for (const auto i : rest) left.push_back(without[i]);
  CHECK(in_order == left);
}

TEST_CASE("a contribution is mixed with its nearest ones and far ones stay apart") {
  rng random = stream(10, "nnm");
  const auto given = random_contributions(random, 16, 64, 5);
  const auto made = nearest_mixtures(given.view(), 5);
  REQUIRE(made.size() == 16);
  for (std::size_t i = 0; i < 11; ++i) {
    CHECK(made[i].of.size() == 11);
    CHECK(made[i].of.back() < 11);
    CHECK(made[i].weight == given.weights[i]);
  }
}
