#include "netem/lifetime_fit.hpp"

#include "kernels/base/check.hpp"
#include "kernels/base/stats.hpp"

#include <algorithm>
#include <cmath>

namespace shoal::netem {
namespace {

/// psi(x) and its derivative: the recurrence up to 8, then the asymptotic series. Error: 1e-12.
double digamma(double x) {
  double out = 0;
  for (; x < 8; ++x) out -= 1 / x;
  const double r = 1 / (x * x);
  return out + std::log(x) - 0.5 / x -
         r * (1.0 / 12 - r * (1.0 / 120 - r * (1.0 / 252 - r * (1.0 / 240 - r / 132))));
}
double trigamma(double x) {
  double out = 0;
  for (; x < 8; ++x) out += 1 / (x * x);
  const double r = 1 / (x * x);
  return out + 1 / x + r / 2 + r / x * (1.0 / 6 - r * (1.0 / 30 - r * (1.0 / 42 - r / 30)));
}

std::vector<double> logarithms(std::span<const double> lengths) {
  std::vector<double> out;
  for (const double x : lengths) out.push_back(std::log(x));
  return out;
}

lifetime made(lifetime_kind kind, double mean, double shape) {
  return {kind, std::max(from_seconds(std::clamp(mean, 1e-9, 8e9)), duration(1)), shape};
}

/// Solves sum x^k ln x / sum x^k - 1 / k = mean ln x for the shape k. The left side rises with k.
lifetime fit_weibull(std::span<const double> lengths) {
  const auto logs = logarithms(lengths);
  const double middle = mean(logs), top = *std::max_element(logs.begin(), logs.end());
  double low = 0.1, high = 100;
  for (int i = 0; i < 80; ++i) {
    const double k = std::sqrt(low * high);
    double sum = 0, weighted = 0;
    for (const double l : logs) {
      const double power = std::exp(k * (l - top));
      sum += power;
      weighted += power * l;
    }
    (weighted / sum - 1 / k < middle ? low : high) = k;
  }
  const double k = std::sqrt(low * high);
  double sum = 0;
  for (const double l : logs) sum += std::exp(k * (l - top));
  const double scale = std::exp(top) * std::pow(sum / static_cast<double>(logs.size()), 1 / k);
  return made(lifetime_kind::weibull, scale / weibull_scale(1, k), k);
}

/// Solves ln k - psi(k) = ln mean - mean ln. Source: Minka, "Estimating a gamma distribution",
/// 2002.
lifetime fit_gamma(std::span<const double> lengths) {
  const double average = mean(lengths);
  const double s = std::max(std::log(average) - mean(logarithms(lengths)), 1e-9);
  double k = (3 - s + std::sqrt((s - 3) * (s - 3) + 24 * s)) / (12 * s);
  for (int i = 0; i < 20; ++i) {
    const double next = k - (std::log(k) - digamma(k) - s) / (1 / k - trigamma(k));
    k = next > 0 ? next : k / 2;
  }
  return made(lifetime_kind::gamma, average, std::clamp(k, 0.1, 100.0));
}

lifetime fit_log_normal(std::span<const double> lengths) {
  const auto logs = logarithms(lengths);
  const double sigma = std::clamp(std::sqrt(variance(logs)), 1e-3, 10.0);
  return made(lifetime_kind::log_normal, std::exp(mean(logs)) * log_normal_mean(sigma), sigma);
}

lifetime fit_hyperexponential(std::span<const double> lengths) {
  const double average = mean(lengths);
  double weight = 0.5, fast = average / 3, slow = average * 2;
  for (int i = 0; i < 300; ++i) {
    double in_fast = 0, fast_sum = 0, slow_sum = 0;
    for (const double x : lengths) {
      const double a = weight / fast * std::exp(-x / fast),
                   b = (1 - weight) / slow * std::exp(-x / slow);
      const double share = a + b > 0 ? a / (a + b) : 0;
      in_fast += share;
      fast_sum += share * x;
      slow_sum += (1 - share) * x;
    }
    const double n = static_cast<double>(lengths.size());
    if (in_fast < 1e-6 * n || n - in_fast < 1e-6 * n) break;
    weight = in_fast / n;
    fast = std::max(fast_sum / in_fast, 1e-6);
    slow = std::max(slow_sum / (n - in_fast), 1e-6);
  }
  lifetime out{lifetime_kind::hyperexponential};
  out.phases = {{weight, from_seconds(fast)}, {1 - weight, from_seconds(slow)}};
  return out;
}

} // namespace

double ks_distance(std::span<const double> lengths, const lifetime& what) {
  SHOAL_CHECK(!lengths.empty(), "no lengths, no distance");
  std::vector<double> sorted(lengths.begin(), lengths.end());
  std::sort(sorted.begin(), sorted.end());
  const auto n = static_cast<double>(sorted.size());
  double worst = 0;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    // The function jumps at `at_most`, so its value just below counts as well.
    const double below = probability_within(what, std::nextafter(sorted[i], 0.0)),
                 at = probability_within(what, sorted[i]);
    worst =
        std::max({worst, below - static_cast<double>(i) / n, static_cast<double>(i + 1) / n - at});
    // Among equal lengths, the first has the smallest rank below and the last has the largest rank
    // above.
    while (i + 1 < sorted.size() && sorted[i + 1] == sorted[i]) {
      ++i;
      if (i + 1 == sorted.size() || sorted[i + 1] != sorted[i])
        worst = std::max(worst, static_cast<double>(i + 1) / n - at);
    }
  }
  return worst;
}

lifetime fit_lifetime(lifetime_kind kind, std::span<const double> lengths) {
  switch (kind) {
  case lifetime_kind::always:
    break;
  case lifetime_kind::exponential:
    return made(kind, mean(lengths), 1);
  case lifetime_kind::weibull:
    return fit_weibull(lengths);
  case lifetime_kind::log_normal:
    return fit_log_normal(lengths);
  case lifetime_kind::gamma:
    return fit_gamma(lengths);
  case lifetime_kind::hyperexponential:
    return fit_hyperexponential(lengths);
  }
  SHOAL_CHECK(false, "an endless lifetime has no lengths");
}

std::vector<fitted_lifetime> fit_lifetimes(std::span<const double> lengths) {
  std::vector<fitted_lifetime> out;
  if (lengths.size() < fewest_lengths ||
      std::all_of(lengths.begin(), lengths.end(), [&](double x) { return x == lengths[0]; }))
    return out;
  using enum lifetime_kind;
  for (const lifetime_kind kind : {exponential, weibull, log_normal, gamma, hyperexponential}) {
    const lifetime what = fit_lifetime(kind, lengths);
    out.push_back({what, ks_distance(lengths, what)});
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const auto& a, const auto& b) { return a.ks < b.ks; });
  return out;
}

} // namespace shoal::netem
