// Where a vector is cut into the parts that the members of a group reduce. The offsets are
// integers, computed once by the leader and sent to everyone, so that members cannot disagree about
// them.
//   quota[i] = blocks * shares[i] / sum(shares), blocks = ceil(length / align)
//   part i gets floor(quota[i]) blocks; the blocks left go one each to the largest remainders,
//   on ties to the lower index (Hamilton's method).
// Ensures: every part is within one block of its quota; the same offsets on every machine, because
// the shares are first turned into 53-bit integers relative to the largest one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace shoal::kernels {

/// Whether `shares` can be used: all finite and >= 0, at least one > 0. Shares that come from
/// other peers are tested with this first.
bool valid_shares(std::span<const double> shares);

/// The n + 1 offsets of n parts: first 0, last `length`, none smaller than the one before; part i
/// is [offsets[i], offsets[i + 1]). All but those equal to `length` are multiples of `align`. A
/// part whose share is 0 is empty. Requires: valid_shares(shares), align > 0. Complexity: O(n log
/// n).
std::vector<std::uint64_t> part_boundaries(std::uint64_t length, std::span<const double> shares,
                                           std::uint64_t align = 1);

/// n shares of 1.
std::vector<double> equal_shares(std::size_t n);

} // namespace shoal::kernels
