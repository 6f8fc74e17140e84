// The lifetime of each kind that fits observed lengths best, by maximum likelihood, and how well it
// does.
//   exponential, log_normal: closed form    weibull, gamma: Newton on the shape hyperexponential:
//   two phases, by EM
// KS is Kolmogorov and Smirnov's D = sup |F_n(x) - F(x)|: the smaller, the better. With n lengths,
// D sqrt(n) above 1.36 would happen once in 20 times if the lengths came from F, and F had not been
// fitted to them. Left out: lengths of which only a part was seen.
#pragma once

#include "netem/distributions.hpp"

#include <span>
#include <vector>

namespace shoal::netem {

struct fitted_lifetime {
  lifetime what;
  double ks = 0;
};

/// sup |F_n - F| of the lengths, in seconds. Requires: not empty.
double ks_distance(std::span<const double> lengths, const lifetime& what);

/// Requires: `kind` not always, lengths above 0, at least two of them different.
lifetime fit_lifetime(lifetime_kind kind, std::span<const double> lengths);

/// Every kind, best first; empty if there are fewer than `fewest_lengths`, or all are alike.
inline constexpr std::size_t fewest_lengths = 8;
std::vector<fitted_lifetime> fit_lifetimes(std::span<const double> lengths);

} // namespace shoal::netem
