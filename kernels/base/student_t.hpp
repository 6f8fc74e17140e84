// Student's t, for confidence intervals of means of few values.
// Source: Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.3 and 26.7.4; above 200
// degrees of freedom 26.7.5.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace shoal {

/// t with P(|T| < t) = 0.95 for Student's t with `degrees` degrees of freedom. This is half the
/// width of a 95 % confidence interval of a mean, in standard errors. Error: below 1e-9 of the
/// value. Requires: degrees > 0.
double student_t_975(std::size_t degrees);

/// Half the width of the 95 % confidence interval of the mean of independent values. Nothing for
/// fewer than two values.
std::optional<double> half_width_of_mean(std::span<const double> values);

} // namespace shoal
