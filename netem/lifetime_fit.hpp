// Fits lifetimes to observed lengths by maximum likelihood, one for each kind of distribution, and
// says how well each one fits.
//   exponential, log_normal   closed form
//   weibull, gamma            Newton's method on the shape
//   hyperexponential          two phases, by EM
// KS is Kolmogorov and Smirnov's D = sup |F_n(x) - F(x)|; smaller is better. For n lengths from a
// distribution F that was not fitted to them, D sqrt(n) exceeds 1.36 once in 20 times.
// Left out: lengths of which only a part was observed.
#pragma once

#include "netem/distributions.hpp"

#include <span>
#include <vector>

namespace shoal::netem {

struct fitted_lifetime {
  lifetime what;
  double ks = 0;
};

/// sup |F_n - F| of the lengths, in seconds. Requires: `lengths` is not empty.
double ks_distance(std::span<const double> lengths, const lifetime& what);

/// Requires: `kind` is not always; all lengths are above 0, and at least two differ.
lifetime fit_lifetime(lifetime_kind kind, std::span<const double> lengths);

/// Fits every kind; the best fit comes first. Returns nothing for fewer than `fewest_lengths`
/// lengths, or if all are equal.
inline constexpr std::size_t fewest_lengths = 8;
std::vector<fitted_lifetime> fit_lifetimes(std::span<const double> lengths);

} // namespace shoal::netem
