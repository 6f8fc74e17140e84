// Compares drawn lengths with their distributions. Kolmogorov-Smirnov: P(sqrt(n) D > 1.949) = 0.001
// for large n. Seeds are fixed, so a failure is a bug and not bad luck.
#include "kernels/base/stats.hpp"
#include "netem/distributions.hpp"
#include "netem/lifetime_fit.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

using namespace shoal;
using namespace shoal::netem;
using namespace std::chrono_literals;

namespace {

constexpr double critical = 1.949;
constexpr std::size_t draws = 20'000;
using enum lifetime_kind;

struct sample {
  std::string name;
  lifetime what;
};

std::vector<sample> samples() {
  std::vector<sample> out{{"exponential", {exponential, 1h}}};
  for (const double shape : {0.45, 1.0, 3.0})
    out.push_back({"weibull " + std::to_string(shape), {weibull, 40min, shape}});
  for (const double sigma : {0.3, 1.0, 2.2})
    out.push_back({"log_normal " + std::to_string(sigma), {log_normal, 2h, sigma}});
  for (const double shape : {0.4, 1.0, 7.5})
    out.push_back({"gamma " + std::to_string(shape), {lifetime_kind::gamma, 30min, shape}});
  out.push_back(
      {"hyperexponential", {hyperexponential, {}, 1, {{0.3, 2min}, {0.6, 1h}, {0.1, 24h}}}});
  return out;
}

std::vector<double> lengths_of(const lifetime& what, std::size_t count = draws) {
  lifetime_draws source(stream(11, "distributions"), what);
  std::vector<double> out;
  for (std::size_t i = 0; i < count; ++i) out.push_back(to_seconds(source.next()));
  return out;
}

double scaled(const std::vector<double>& lengths, const lifetime& what) {
  return ks_distance(lengths, what) * std::sqrt(static_cast<double>(lengths.size()));
}

} // namespace

TEST_CASE("drawn lengths follow their distribution and have its mean") {
  for (const auto& [name, what] : samples()) {
    CAPTURE(name);
    CHECK(scaled(lengths_of(what), what) < critical);
    const auto many = lengths_of(what, 20 * draws);
    const double error = std::sqrt(variance(many) / static_cast<double>(many.size()));
    CHECK(std::abs(mean(many) - mean_seconds(what)) < 4 * error);
  }
}

TEST_CASE("a fit to drawn lengths recovers their distribution") {
  for (const auto& [name, what] : samples()) {
    CAPTURE(name);
    if (what.phases.size() > 2) continue; // the fit has two phases
    const auto lengths = lengths_of(what);
    const lifetime fitted = fit_lifetime(what.kind, lengths);
    CHECK(scaled(lengths, fitted) < critical);
    // Compares draws from the fit with the original distribution.
    CHECK(scaled(lengths_of(fitted), what) < critical);
    CHECK(fitted.shape == doctest::Approx(what.shape).epsilon(0.03));
    CHECK(to_seconds(fitted.mean) == doctest::Approx(to_seconds(what.mean)).epsilon(0.1));
  }
  const lifetime two{hyperexponential, {}, 1, {{0.25, 3min}, {0.75, 2h}}};
  const lifetime fitted = fit_lifetime(hyperexponential, lengths_of(two));
  CHECK(scaled(lengths_of(two), fitted) < critical);
  CHECK(fitted.phases[0].weight == doctest::Approx(0.25).epsilon(0.05));
  CHECK(to_seconds(fitted.phases[0].mean) == doctest::Approx(180).epsilon(0.1));
  CHECK(to_seconds(fitted.phases[1].mean) == doctest::Approx(7200).epsilon(0.03));
}

TEST_CASE("the distribution that lengths were drawn from fits them best") {
  for (const lifetime& what : {lifetime{weibull, 40min, 0.45}, lifetime{log_normal, 2h, 1.0},
                               lifetime{lifetime_kind::gamma, 30min, 7.5}}) {
    const auto fits = fit_lifetimes(lengths_of(what));
    REQUIRE(fits.size() == 5);
    CHECK(fits.front().what.kind == what.kind);
  }
  CHECK(fit_lifetimes(std::vector<double>(7, 1.0)).empty());
  CHECK(fit_lifetimes(std::vector<double>(70, 1.0)).empty());
}

TEST_CASE("the test of the distributions notices a wrong distribution") {
  const auto drawn = lengths_of({lifetime_kind::gamma, 30min, 2});
  CHECK(scaled(drawn, {lifetime_kind::gamma, 30min, 2.2}) > critical);
  CHECK(scaled(drawn, {lifetime_kind::gamma, 31min, 2}) > critical);
  CHECK(scaled(drawn, {weibull, 30min, 1.5}) > critical);
}

TEST_CASE("the rest of a length found at a random instant has the density of the lengths that "
          "outlive it") {
  // P(rest <= x) is the integral of 1 - F up to x, divided by the integral over all x. With
  // `at_most`, both integrals end there.
  for (auto [name, what] : samples())
    for (const duration cap : {forever, duration(90min)}) {
      CAPTURE(name);
      what.at_most = cap;
      lifetime_draws source(stream(12, "rest"), what);
      std::vector<double> left;
      while (left.size() < draws)
        if (const auto rest = source.rest()) left.push_back(to_seconds(*rest));
      std::sort(left.begin(), left.end());
      // The integral uses the trapezoidal rule, with a fine grid where the function changes.
      double at = 0, area = 0, worst = 0;
      std::vector<double> areas;
      for (const double x : left) {
        for (int part = 0; part < 20; ++part) {
          const double next = at + (x - at) / (20 - part);
          area +=
              (next - at) * (2 - probability_within(what, at) - probability_within(what, next)) / 2;
          at = next;
        }
        areas.push_back(area);
      }
      double whole = mean_seconds(what);
      if (cap != forever) {
        for (double x = at; x < to_seconds(cap); x += 1) area += 1 - probability_within(what, x);
        whole = area;
      }
      for (std::size_t i = 0; i < areas.size(); ++i)
        worst = std::max(worst, std::abs(areas[i] / whole - (static_cast<double>(i) + 0.5) /
                                                                static_cast<double>(draws)));
      CHECK(worst * std::sqrt(static_cast<double>(draws)) < critical + 0.1);
    }
}

TEST_CASE("lengths are cut to at_most") {
  const lifetime what{exponential, 4h, 1, {}, 21h};
  const auto lengths = lengths_of(what);
  CHECK(*std::max_element(lengths.begin(), lengths.end()) == 21 * 3600.0);
  CHECK(scaled(lengths, what) < critical);
}

TEST_CASE("the first lengths of a seed are the same on every machine") {
  const auto first = [](const lifetime& what) {
    lifetime_draws source(stream(1, "pinned"), what);
    (void)source.next();
    return source.next().count();
  };
  CHECK(first({log_normal, 2h, 1.5}) == 33'653'506'926'661);
  CHECK(first({lifetime_kind::gamma, 30min, 0.4}) == 318'631'419'575);
  CHECK(first({lifetime_kind::gamma, 30min, 7.5}) == 1'368'284'787'747);
  CHECK(first({hyperexponential, {}, 1, {{0.3, 2min}, {0.7, 1h}}}) == 14'972'142'493'695);
}
