// The share of a vector that each member of a butterfly all-reduce should reduce, given unequal
// lines. A member with share w of the vector moves 1 + (n - 2) w vectors each way. It sends the
// rest of its own, receives n - 1 contributions, and returns n - 1 results. So the slowest member
// takes
//   max_i (1 + (n - 2) w_i) / b_i     to be minimised over sum w = 1, 0 <= w_i <= [b_i > 0].
// Closed form for n > 2:
//   w_i = clamp((x b_i - 1) / (n - 2), 0, 1) with the smallest x >= max_i 1/b_i
//   for which the shares sum to at least 1
// Source: Diskin et al., "Distributed Deep Learning in Open Collaborations", arXiv:2106.10207; the
// form without pair limits.
#pragma once

#include <span>
#include <vector>

namespace shoal::kernels {

/// Shares that sum to 1. `rates` in any one unit; a rate of 0 reduces nothing.
/// For one or two members every split costs the same: shares are proportional to rates.
/// Requires: not empty, all finite and >= 0, at least one > 0.
std::vector<double> balanced_shares(std::span<const double> rates);

} // namespace shoal::kernels
