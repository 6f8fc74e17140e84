#include "netem/distributions.hpp"

#include "kernels/base/check.hpp"
#include "kernels/base/portable_math.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace shoal::netem {
namespace {

constexpr double longest_seconds = 3e9; // a longer length never ends: nanoseconds reach 9.2e9 s

/// The gamma function for x >= 1. The C library's function differs in its last bits between
/// versions.
/// Source: Lanczos' approximation with g = 7 and nine terms, coefficients by Godfrey (2001).
double gamma(double x) {
  constexpr std::array<double, 9> c{
      0.99999999999980993,  676.5203681218851,     -1259.1392167224028,
      771.32342877765313,   -176.61502916214059,   12.507343278686905,
      -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7};
  const double z = x - 1;
  double sum = c[0];
  for (std::size_t i = 1; i < c.size(); ++i) sum += c[i] / (z + static_cast<double>(i));
  const double t = z + 7.5;
  constexpr double root_two_pi = 2.5066282746310002;
  return root_two_pi * portable::pow(t, z + 0.5) * portable::exp(-t) * sum;
}

double standard_gamma(rng& draws, double shape) {
  if (shape < 1) {
    const double u = 1 - draws.uniform();
    return standard_gamma(draws, shape + 1) * portable::pow(u, 1 / shape);
  }
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  while (true) {
    const double x = draws.normal();
    const double root = 1 + c * x;
    if (root <= 0) continue;
    const double v = root * root * root;
    const double u = 1 - draws.uniform();
    if (portable::log(u) < 0.5 * x * x + d - d * v + d * portable::log(v)) return d * v;
  }
}

/// The regularized lower incomplete gamma function, by its series below a + 1 and by Lentz's
/// continued fraction above.
double gamma_p(double a, double x) {
  if (x <= 0) return 0;
  const double front = std::exp(-x + a * std::log(x) - std::lgamma(a));
  if (x < a + 1) {
    double term = 1 / a, sum = term;
    for (int n = 1; n < 10'000 && std::abs(term) > 1e-16 * std::abs(sum); ++n)
      sum += term *= x / (a + n);
    return std::min(1.0, sum * front);
  }
  constexpr double tiny = 1e-300;
  double b = x + 1 - a, c = 1 / tiny, d = 1 / b, h = d;
  for (int i = 1; i < 10'000; ++i) {
    const double n = -i * (i - a);
    b += 2;
    d = n * d + b;
    if (std::abs(d) < tiny) d = tiny;
    c = b + n / c;
    if (std::abs(c) < tiny) c = tiny;
    d = 1 / d;
    h *= d * c;
    if (std::abs(d * c - 1) < 1e-15) break;
  }
  return 1 - front * h;
}

/// Converts seconds to a length: rounded, at least shortest_lifetime, `forever` if out of range.
duration as_length(double seconds) {
  if (!(seconds < longest_seconds)) return forever;
  return std::max(from_seconds(seconds), shortest_lifetime);
}

} // namespace

double weibull_scale(double mean, double shape) {
  SHOAL_CHECK(shape >= 0.1 && shape <= 100, "a Weibull shape is in [0.1, 100]");
  return mean / gamma(1 + 1 / shape);
}

double log_normal_mean(double sigma) {
  return portable::exp(sigma * sigma / 2);
}

double mean_seconds(const lifetime& what) {
  if (what.kind == lifetime_kind::always) return std::numeric_limits<double>::infinity();
  if (what.kind != lifetime_kind::hyperexponential) return to_seconds(what.mean);
  double weights = 0, sum = 0;
  for (const lifetime_phase& phase : what.phases) {
    weights += phase.weight;
    sum += phase.weight * to_seconds(phase.mean);
  }
  return sum / weights;
}

double probability_within(const lifetime& what, double seconds) {
  if (what.kind == lifetime_kind::always || seconds <= 0) return 0;
  if (what.at_most != forever && seconds >= to_seconds(what.at_most)) return 1;
  const double mean = to_seconds(what.mean);
  switch (what.kind) {
  case lifetime_kind::always:
    break;
  case lifetime_kind::exponential:
    return -std::expm1(-seconds / mean);
  case lifetime_kind::weibull:
    return -std::expm1(-std::pow(seconds / weibull_scale(mean, what.shape), what.shape));
  case lifetime_kind::log_normal: {
    const double mu = std::log(mean) - what.shape * what.shape / 2;
    return 0.5 * std::erfc(-(std::log(seconds) - mu) / (what.shape * std::sqrt(2.0)));
  }
  case lifetime_kind::gamma:
    return gamma_p(what.shape, seconds * what.shape / mean);
  case lifetime_kind::hyperexponential: {
    double weights = 0, sum = 0;
    for (const lifetime_phase& phase : what.phases) {
      weights += phase.weight;
      sum += phase.weight * -std::expm1(-seconds / to_seconds(phase.mean));
    }
    return sum / weights;
  }
  }
  return 0;
}

lifetime_draws::lifetime_draws(rng draws, const lifetime& what)
    : draws_(draws), kind_(what.kind), scale_(to_seconds(what.mean)), shape_(what.shape),
      at_most_(what.at_most) {
  if (kind_ == lifetime_kind::always) return;
  if (kind_ == lifetime_kind::hyperexponential) {
    SHOAL_CHECK(!what.phases.empty(), "a hyperexponential lifetime has phases");
    phases_ = what.phases;
    return;
  }
  SHOAL_CHECK(what.mean > duration::zero(), "a mean lifetime is above 0");
  if (kind_ == lifetime_kind::weibull) scale_ = weibull_scale(scale_, shape_);
  if (kind_ == lifetime_kind::log_normal) scale_ = portable::log(scale_) - shape_ * shape_ / 2;
  if (kind_ == lifetime_kind::gamma) scale_ = scale_ / shape_;
}

std::size_t lifetime_draws::phase(bool by_time) {
  const auto weight = [&](const lifetime_phase& of) {
    return by_time ? of.weight * to_seconds(of.mean) : of.weight;
  };
  double total = 0;
  for (const lifetime_phase& of : phases_) total += weight(of);
  double left = draws_.uniform() * total;
  for (std::size_t i = 0; i + 1 < phases_.size(); ++i)
    if ((left -= weight(phases_[i])) < 0) return i;
  return phases_.size() - 1;
}

double lifetime_draws::whole() {
  switch (kind_) {
  case lifetime_kind::always:
    break;
  case lifetime_kind::exponential:
    return draws_.exponential(scale_);
  case lifetime_kind::weibull:
    return draws_.weibull(shape_, scale_);
  case lifetime_kind::log_normal:
    return draws_.lognormal(scale_, shape_);
  case lifetime_kind::gamma:
    return scale_ * standard_gamma(draws_, shape_);
  case lifetime_kind::hyperexponential: {
    const std::size_t chosen = phase(false);
    return draws_.exponential(to_seconds(phases_[chosen].mean));
  }
  }
  return longest_seconds;
}

double lifetime_draws::length_biased() {
  switch (kind_) {
  case lifetime_kind::always:
    break;
  case lifetime_kind::exponential:
    return scale_ * standard_gamma(draws_, 2);
  case lifetime_kind::weibull:
    return scale_ * portable::pow(standard_gamma(draws_, 1 + 1 / shape_), 1 / shape_);
  case lifetime_kind::log_normal:
    return draws_.lognormal(scale_ + shape_ * shape_, shape_);
  case lifetime_kind::gamma:
    return scale_ * standard_gamma(draws_, shape_ + 1);
  case lifetime_kind::hyperexponential: {
    const std::size_t chosen = phase(true);
    return to_seconds(phases_[chosen].mean) * standard_gamma(draws_, 2);
  }
  }
  return longest_seconds;
}

duration lifetime_draws::next() {
  return std::max(std::min(as_length(whole()), at_most_), shortest_lifetime);
}

std::optional<duration> lifetime_draws::rest() {
  SHOAL_CHECK(kind_ != lifetime_kind::always, "an endless lifetime has no middle");
  const double length = length_biased();
  const duration left = as_length(length * draws_.uniform());
  if (left != forever && left >= at_most_) return std::nullopt;
  return std::min(left, at_most_);
}

} // namespace shoal::netem
