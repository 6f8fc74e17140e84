// The decoders' last step: each code byte selects a float from a table of 256. The function moves
// bits and computes nothing, so every implementation gives the same result.
#pragma once

#include <array>
#include <cstddef>
#include <span>

namespace shoal::kernels {

/// x[i] = table[codes[i]]. Shapes: codes [n], x [n]. Requires: no aliasing. Complexity: O(n), plus
/// a constant of about 256.
void look_up(const std::array<float, 256>& table, const std::byte* codes, std::span<float> x);

} // namespace shoal::kernels
