// The groups of the averaging strategies, and the speed at which they bring all peers to the mean.
// `Distortion` is the mean over peers and values of the squared distance to the mean of all peers'
// values,
//   (1/N) sum_i |theta_i - mean|^2 / V.
// Sources: Ryabinin et al., "Moshpit SGD", arXiv:2103.03239 (grid, theorem 3.2); Boyd et al.,
// "Randomized Gossip Algorithms", IEEE Trans. Inf. Theory 52 (2006) (pairs).
#pragma once

#include "kernels/base/result.hpp"
#include "kernels/base/rng.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::kernels {

/// side^dimensions cells. Each peer is in one cell. Peers whose cells differ only in the digit of
/// one axis are a group.
struct grid {
  std::uint32_t side = 32;
  std::uint32_t dimensions = 2;
  std::uint64_t cells() const noexcept;
  bool operator==(const grid&) const = default;
};

/// "32x32", "8x8x8": equal sides, at least 2 each, at most 2^40 cells.
result<grid> parse_grid(std::string_view text);
std::string to_string(const grid& what);
/// The smallest square with a cell for each of `peers`; sides are at least 2. Requires: peers <=
/// 2^62.
grid square_grid(std::uint64_t peers);

/// The axis along which round `t` (from 1) averages: t mod d, so that d rounds in a row use each
/// axis once.
inline std::uint32_t axis_of(const grid& g, std::uint64_t t) noexcept {
  return static_cast<std::uint32_t>(t % g.dimensions);
}

/// Names the group of `cell` along `axis`: the cell without that digit.
std::uint64_t line_of(const grid& g, std::uint64_t cell, std::uint32_t axis) noexcept;

/// A cell for each of `peers`, drawn without replacement. If there are more peers than cells, each
/// cell gets one peer before any gets a second. Complexity: O(cells) at most.
std::vector<std::uint64_t> place(const grid& g, std::size_t peers, rng& draws);

/// A group for each of the peers: shuffled, in floor(N / size) groups (at least one). The remaining
/// peers join one group each.
std::vector<std::uint32_t> random_groups(std::size_t peers, std::size_t size, rng& draws);

/// The receivers of a push-sum peer in round `t` (from 1). They are the out-edges 2^h and 2^(h+1)
/// on, h = t mod floor(log2(N - 1)); fewer where these fall together. Source: Assran et al.,
/// "Stochastic Gradient Push", ICML 2019.
std::vector<std::uint32_t> exponential_neighbours(std::uint32_t peer, std::uint32_t peers,
                                                  std::uint64_t t);

// The theory of each strategy.

/// Factor of the expected distortion by one round of r random groups of N peers: (r - 1) / (N - 1),
/// exactly, for any sizes. Theorem 3.2 draws with replacement and has (r - 1)/N + r/N^2, which is
/// larger and equal only in the limit.
double random_groups_factor(double peers, double groups);
/// Theorem 3.2 as printed.
double random_groups_factor_as_printed(double peers, double groups);
/// Expected distortion, relative to the initial one, of a full grid after t rounds without
/// failures. The initial values are independent with equal distributions. It is (M^-t - 1/N) / (1 -
/// 1/N) for t < d, then 0.
double full_grid_distortion(const grid& g, std::uint64_t t);
/// Expected rounds until an all-reduce that needs all peers succeeds, or `limit`: (1 - (1 -
/// P)^limit) / P, P = (1 - p)^N.
double all_reduce_rounds(double peers, double failure, double limit);
/// The standard deviation of that number of rounds. Complexity: O(limit).
double all_reduce_deviation(double peers, double failure, double limit);
/// Factor of the expected distortion by one exchange of a random pair: 1 - 1 / (N - 1).
double pair_factor(double peers);

} // namespace shoal::kernels
