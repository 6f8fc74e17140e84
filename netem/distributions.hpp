// Random lifetimes: lengths drawn from a named distribution, with the same bits on every machine.
//   exponential:       P(length <= x) = 1 - exp(-x / mean)
//   weibull:           P(length <= x) = 1 - exp(-(x / scale)^shape)
//                      scale = mean / gamma(1 + 1 / shape)
//   log_normal:        ln(length) is normal with mean mu and deviation sigma
//                      mu = ln(median) = ln(mean) - sigma^2 / 2
//   gamma:             density x^(shape - 1) exp(-x / scale) / (gamma(shape) scale^shape)
//                      scale = mean / shape
//   hyperexponential:  exponential with the mean of a phase, which is chosen by weight
// A length beyond `at_most` is cut to it.
//
// A stationary process is observed at a random instant. The rest of the length found there has the
// density (1 - P(length <= x)) / mean. It is drawn as a uniform fraction of a length-biased draw.
// The length-biased draw is gamma(1 + 1 / shape)^(1 / shape) for the Weibull, log_normal(mu +
// sigma^2), and gamma(shape + 1) (Cox, "Renewal Theory", 1962, chapter 5).
// Source: the gamma draw is Marsaglia and Tsang, "A simple method for generating gamma variables",
// ACM TOMS 26 (2000).
#pragma once

#include "kernels/base/rng.hpp"
#include "kernels/base/units.hpp"

#include <optional>
#include <vector>

namespace shoal::netem {

/// The end of a session that does not end.
inline constexpr duration forever = duration::max();
/// The shortest drawn length. It keeps any distribution from filling an instant with events.
inline constexpr duration shortest_lifetime = std::chrono::milliseconds(1);

enum class lifetime_kind { always, exponential, weibull, log_normal, gamma, hyperexponential };

struct lifetime_phase {
  double weight = 1; ///< > 0
  duration mean{};   ///< > 0
  bool operator==(const lifetime_phase&) const = default;
};

/// The distribution of a length.
struct lifetime {
  lifetime_kind kind = lifetime_kind::always; ///< always: the session never ends
  duration mean{};  ///< before `at_most`; > 0 unless always or hyperexponential
  double shape = 1; ///< weibull and gamma: [0.1, 100]; log_normal: sigma in (0, 10]
  std::vector<lifetime_phase> phases{}; ///< hyperexponential only
  duration at_most = forever;
  bool operator==(const lifetime&) const = default;
};

/// scale = mean / gamma(1 + 1 / shape), the same bits on every machine.
/// Requires: 0.1 <= shape <= 100. Error: relative 1e-13.
double weibull_scale(double mean, double shape);
/// exp(sigma^2 / 2): the mean of a log-normal with the median 1.
double log_normal_mean(double sigma);

/// The mean in seconds before `at_most`; infinite for always.
double mean_seconds(const lifetime& what);
/// P(length <= seconds), with `at_most`. Not the same bits on every machine, so for statistics
/// only.
double probability_within(const lifetime& what, double seconds);

/// Draws lengths of one lifetime.
class lifetime_draws {
public:
  lifetime_draws(rng draws, const lifetime& what);
  duration next();
  /// Draws the rest of a length found at a random instant. Returns nothing if the rest is beyond
  /// `at_most`: the caller then repeats the draw and the choice that led to it.
  /// Requires: not always.
  std::optional<duration> rest();

private:
  double whole();
  double length_biased();
  std::size_t phase(bool by_time);

  rng draws_;
  lifetime_kind kind_;
  double scale_ = 0, shape_ = 1; // log_normal: mu and sigma
  duration at_most_ = forever;
  std::vector<lifetime_phase> phases_;
};

} // namespace shoal::netem
