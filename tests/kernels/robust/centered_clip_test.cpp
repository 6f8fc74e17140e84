#include "kernels/robust/centered_clip.hpp"
#include "kernels/robust/coordinate_median.hpp"
#include "tests/kernels/robust/contributions.hpp"

#include <algorithm>
#include <utility>

using namespace shoal;
using namespace shoal::kernels;
using namespace shoal::kernels::testing;

namespace {

using values = std::vector<double>;

contributions scalars(std::initializer_list<float> of) {
  contributions out;
  for (const auto x : of) out.add({x});
  return out;
}

/// The iteration, element by element.
values reference(const contributions& given, const values& radii, std::size_t iterations,
                 double tolerance = 0) {
  values v(given.size());
  coordinate_median<double>(given.view(), middle::lower, v);
  double weight = 0;
  for (const auto w : given.weights) weight += w;
  for (std::size_t t = 0; t < iterations; ++t) {
    values step(v.size());
    for (std::size_t i = 0; i < given.count(); ++i) {
      double square = 0;
      for (std::size_t j = 0; j < v.size(); ++j)
        square += (given.values[i][j] - v[j]) * (given.values[i][j] - v[j]);
      const double share = std::min(1.0, radii[i] / std::sqrt(square));
      for (std::size_t j = 0; j < v.size(); ++j)
        step[j] += given.weights[i] / weight * share * (given.values[i][j] - v[j]);
    }
    double length = 0;
    for (std::size_t j = 0; j < v.size(); ++j) v[j] += step[j], length += step[j] * step[j];
    if (std::sqrt(length) <= tolerance) break;
  }
  return v;
}

double clipped(const contributions& given, double radius, std::size_t iterations) {
  values out(1);
  const values radii(given.count(), radius);
  centered_clip<double>(given.view(), radii, {}, {.iterations = iterations}, out);
  return out[0];
}

/// The convex function whose minimum is the fixed point.
double cost(const contributions& given, const values& radii, const values& v) {
  double out = 0;
  for (std::size_t i = 0; i < given.count(); ++i) {
    double square = 0;
    for (std::size_t j = 0; j < v.size(); ++j)
      square += (given.values[i][j] - v[j]) * (given.values[i][j] - v[j]);
    const double far = std::sqrt(square);
    out += given.weights[i] * (far <= radii[i] ? square / 2 : radii[i] * (far - radii[i] / 2));
  }
  return out;
}

/// The derivative of the cost along coordinate j, up to sign: it falls when v[j] grows.
double pull(const contributions& given, const values& radii, const values& v, std::size_t j) {
  double out = 0;
  for (std::size_t i = 0; i < given.count(); ++i) {
    double square = 0;
    for (std::size_t k = 0; k < v.size(); ++k)
      square += (given.values[i][k] - v[k]) * (given.values[i][k] - v[k]);
    const double far = std::sqrt(square);
    out += given.weights[i] * (given.values[i][j] - v[j]) * (far <= radii[i] ? 1 : radii[i] / far);
  }
  return out;
}

/// The coordinate j that minimizes the cost when all coordinates above j are best for it.
/// Bisection in each coordinate, nested: it uses nothing of the iteration.
void minimize(const contributions& given, const values& radii, values& v, std::size_t j) {
  double low = -2000, high = 2000;
  for (int step = 0; step < 70; ++step) {
    v[j] = (low + high) / 2;
    if (j + 1 < v.size()) minimize(given, radii, v, j + 1);
    (pull(given, radii, v, j) > 0 ? low : high) = v[j];
  }
}

} // namespace

TEST_CASE("CenteredClip of scalars has the values that a hand computes") {
  const auto outlier = scalars({1, 2, 3, 1000});
  CHECK(clipped(outlier, 1, 1) == doctest::Approx(2.25).epsilon(1e-14));
  CHECK(clipped(outlier, 1, 20) == doctest::Approx(2.5 - 0.5 * 0x1p-20).epsilon(1e-13));
  CHECK(clipped(outlier, 1, 500) == doctest::Approx(2.5).epsilon(1e-9));

  contributions attacked;
  for (int i = 0; i < 9; ++i) attacked.add({0});
  for (int i = 0; i < 7; ++i) attacked.add({-1000});
  for (const double radius : {1.0, 10.0}) {
    // The pull of seven at the radius against nine within it.
    CHECK(clipped(attacked, radius, 500) == doctest::Approx(-radius * 7 / 9).epsilon(1e-9));
    CHECK(clipped(attacked, radius, 1) == doctest::Approx(-0.4375 * radius).epsilon(1e-14));
  }

  auto spread = scalars({1, 1.1F, 0.9F, 1, 1.05F, 0.95F, 1.02F, 0.98F, 1});
  for (int i = 0; i < 7; ++i) spread.add({-1000});
  CHECK(clipped(spread, 1, 500) == doctest::Approx(0.222222).epsilon(1e-5));
  CHECK(clipped(spread, 0.1, 500) == doctest::Approx(0.905).epsilon(1e-6));
}

TEST_CASE("CenteredClip equals the plain iteration to 1e-12 of the radius") {
  rng random = stream(2, "clip");
  for (const std::size_t size : {1, 7, 64, 255, 257, 1000})
    for (const std::size_t count : {1, 2, 3, 5, 16, 33})
      for (const double radius : {0.1, 1.0, 30.0}) {
        CAPTURE(size);
        CAPTURE(count);
        CAPTURE(radius);
        const auto given = random_contributions(random, count, size, count * 2 / 5);
        values radii;
        for (const auto w : given.weights) radii.push_back(clip_radius(radius, 1, 2, 32, w));
        for (const std::size_t iterations : {1, 3, 100}) {
          values out(size);
          centered_clip<double>(given.view(), radii, {}, {.iterations = iterations, .tolerance = 0},
                                out);
          check_near(out, reference(given, radii, iterations), 1e-12 * std::max(1.0, radius));
        }
      }
}

TEST_CASE("CenteredClip's fixed point is within 1e-9 of the minimum that a search finds") {
  rng random = stream(3, "clip search");
  for (const std::size_t size : {1, 2})
    for (const std::size_t far : {0, 3, 7})
      for (const double radius : {0.2, 1.0, 10.0}) {
        CAPTURE(size);
        CAPTURE(far);
        CAPTURE(radius);
        const auto given = random_contributions(random, 16, size, far);
        const values radii(16, radius);
        double far_weight = 0, weight = 0;
        for (std::size_t i = 0; i < 16; ++i) {
          weight += given.weights[i];
          if (i + far >= 16) far_weight += given.weights[i];
        }
        if (far_weight > 0.45 * weight) continue;
        values out(size), best(size);
        const auto outcome =
            centered_clip<double>(given.view(), radii, {}, {.iterations = 100'000}, out);
        REQUIRE(outcome.converged);
        minimize(given, radii, best, 0);
        CHECK(distance(out, best) <= 1e-9 * std::max(1.0, radius));
        CHECK(cost(given, radii, out) <= cost(given, radii, best) * (1 + 1e-12));
      }
}

TEST_CASE("CenteredClip moves at most so far as the faulty share allows and breaks beyond a half") {
  for (const auto& [faulty, bounded] : {std::pair{7, true}, std::pair{9, false}}) {
    contributions given;
    for (int i = 0; i < 16 - faulty; ++i) given.add({0, 0});
    for (int i = 0; i < faulty; ++i) given.add({1e6F, 0});
    values out(2);
    const values radii(16, 1);
    const auto outcome = centered_clip<double>(given.view(), radii, {}, {}, out);
    CHECK(outcome.converged);
    CHECK((std::abs(out[0]) < 1) == bounded);
  }
}

TEST_CASE("CenteredClip gives the same bits again and the same values as floats") {
  rng random = stream(4, "clip bits");
  const auto given = random_contributions(random, 16, 1003, 5);
  const values radii(16, 3);
  values first(1003), again(1003);
  std::vector<float> floats(1003);
  centered_clip<double>(given.view(), radii, {}, {}, first);
  centered_clip<double>(given.view(), radii, {}, {}, again);
  centered_clip<float>(given.view(), radii, {}, {}, floats);
  CHECK(first == again);
  for (std::size_t j = 0; j < floats.size(); ++j) CHECK(floats[j] == static_cast<float>(first[j]));
}

TEST_CASE("CenteredClip bears contributions as large as a float can be") {
  contributions given;
  for (int i = 0; i < 9; ++i) given.add({1, 2, 3});
  for (int i = 0; i < 7; ++i) given.add({3e38F, -3e38F, 3e38F});
  values out(3);
  const values radii(16, 1);
  const auto outcome = centered_clip<double>(given.view(), radii, {}, {}, out);
  CHECK(outcome.converged);
  CHECK(distance(out, {1, 2, 3}) < 1);
}

TEST_CASE("radii go with the roots of the length and of the samples") {
  CHECK(clip_radius(10, 25, 100, 0, 7) == 5);
  CHECK(clip_radius(10, 100, 100, 64, 16) == 20);
  CHECK(clip_radius(10, 25, 100, 16, 64) == 2.5);
}
