#include "netem/churn.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "kernels/base/check.hpp"
#include "kernels/base/portable_math.hpp"

namespace shoal::netem {
namespace {

constexpr double longest_seconds = 3e9;   // what is longer never ends: nanoseconds reach 9.2e9 s

/// The gamma function for x >= 1. The C library's differs between versions in its last bits.
/// Source: Lanczos' approximation with g = 7 and nine terms, coefficients by Godfrey (2001).
double gamma(double x) {
  constexpr std::array<double, 9> c{0.99999999999980993,     676.5203681218851,    -1259.1392167224028,
                                    771.32342877765313,      -176.61502916214059,  12.507343278686905,
                                    -0.13857109526572012,    9.9843695780195716e-6, 1.5056327351493116e-7};
  const double z = x - 1;
  double sum = c[0];
  for (std::size_t i = 1; i < c.size(); ++i) sum += c[i] / (z + static_cast<double>(i));
  const double t = z + 7.5;
  constexpr double root_two_pi = 2.5066282746310002;
  return root_two_pi * portable::pow(t, z + 0.5) * portable::exp(-t) * sum;
}

/// `a` + `b`, or forever where that is out of reach.
duration later(duration a, duration b) { return a > forever - b ? forever : a + b; }

}  // namespace

double weibull_scale(double mean, double shape) {
  SHOAL_CHECK(shape >= 0.1 && shape <= 100, "a Weibull shape is in [0.1, 100]");
  return mean / gamma(1 + 1 / shape);
}

session_source::lengths::lengths(rng draws, const lifetime& what)
    : draws_(draws), kind_(what.kind), scale_(to_seconds(what.mean)), shape_(what.shape) {
  SHOAL_CHECK(kind_ == lifetime_kind::always || what.mean > duration::zero(), "a mean lifetime is above 0");
  if (kind_ == lifetime_kind::weibull) scale_ = weibull_scale(scale_, shape_);
}

duration session_source::lengths::next() {
  double seconds = longest_seconds;
  if (kind_ == lifetime_kind::exponential) seconds = draws_.exponential(scale_);
  if (kind_ == lifetime_kind::weibull) seconds = draws_.weibull(shape_, scale_);
  if (seconds >= longest_seconds) return forever;
  return std::max(from_seconds(seconds), shortest_lifetime);
}

session_source session_source::drawn(std::uint64_t seed, std::string_view host, const lifetime& stay,
                                     const lifetime& gap) {
  session_source out;
  const std::string name(host);
  out.process_ = process{lengths(stream(seed, "churn.session:" + name), stay),
                         lengths(stream(seed, "churn.gap:" + name), gap), {}};
  return out;
}

session_source session_source::replayed(std::shared_ptr<const std::vector<session>> sessions) {
  SHOAL_CHECK(sessions != nullptr, "a replayed source needs sessions, if only an empty list");
  session_source out;
  out.replay_.sessions = std::move(sessions);
  return out;
}

std::optional<session> session_source::next() {
  if (!process_) {
    if (replay_.at == replay_.sessions->size()) return std::nullopt;
    return (*replay_.sessions)[replay_.at++];
  }
  if (process_->at == forever) return std::nullopt;
  session out{process_->at, later(process_->at, process_->stay.next())};
  process_->at = out.end == forever ? forever : later(out.end, process_->gap.next());
  return out;
}

}  // namespace shoal::netem
