// The boundaries at which a vector is cut into the parts that the members of a group reduce. The
// leader computes the integer offsets once and sends them to all members, so members cannot
// disagree.
//   quota[i] = blocks * shares[i] / sum(shares), blocks = ceil(length / align)
//   part i gets floor(quota[i]) blocks; the blocks left go one each to the largest remainders,
//   on ties to the lower index (Hamilton's method).
// Ensures: every part is within one block of its quota. The offsets are the same on every machine,
// because the shares first become 53-bit integers relative to the largest one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace shoal::kernels {

/// Whether `shares` can be used: all finite and >= 0, at least one > 0. Callers test shares from
/// other peers with this first.
bool valid_shares(std::span<const double> shares);

/// The n + 1 offsets of n parts: first 0, last `length`, ascending; part i is [offsets[i],
/// offsets[i + 1]). Offsets below `length` are multiples of `align`. A part with the share 0 is
/// empty. Requires: valid_shares(shares), align > 0. Complexity: O(n log n).
std::vector<std::uint64_t> part_boundaries(std::uint64_t length, std::span<const double> shares,
                                           std::uint64_t align = 1);

/// n shares of 1.
std::vector<double> equal_shares(std::size_t n);

} // namespace shoal::kernels
