// The decoders' last step: floats from a table of 256 by a byte each. Moves bits and computes
// nothing, so that every way gives the same.
#pragma once

#include <array>
#include <cstddef>
#include <span>

namespace shoal::kernels {

/// x[i] = table[codes[i]]. Shapes: codes [n], x [n]. Requires: no aliasing. Complexity: O(n), and
/// about 256 more.
void look_up(const std::array<float, 256>& table, const std::byte* codes, std::span<float> x);

} // namespace shoal::kernels
