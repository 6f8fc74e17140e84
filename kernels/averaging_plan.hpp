// The share of the vector that each peer reduces in one round of averaging, given unequal lines:
// DeDLOC's linear program. Peer i sends values if c_i = 1 and wants the result if r_i = 1; C and R
// count these peers. A peer j with the share w_j gets its part from every other sender and returns
// its mean to every other receiver. For each bit of the vector, a round takes
//   T = max over i of  up:   (c_i (1 - w_i) + (R - r_i) w_i) / up_i
//                            (its own values of the others' parts; its mean, to each receiver)
//                      down: ((C - c_i) w_i + r_i (1 - w_i)) / down_i
//                            (the others' values of its part; the others' means)
//       and over i -> j  pair: (c_i w_j + r_j w_i) / limit_ij
//                            (both of these from i to j)
// The plan has the smallest T over sum w = 1, 0 <= w_i <= [i can reduce].
//
// Equal peers give an all-reduce with T = 2 (n - 1) / (n b). One line that carries n - 1 vectors,
// among slow lines, gives a parameter server; lines in between give a hybrid. A peer that cannot be
// reached sends and reduces nothing. Peers that do not train (c = r = 0) and have good lines reduce
// for the others, as in BytePS. The plan leaves out the delay and other traffic on the lines.
// Source: Diskin et al., "Distributed Deep Learning in Open Collaborations", arXiv:2106.10207,
// section 3.2, with a_ij in proportion to w_j and g_ij to w_i, for which the rates of its program
// become these loads; Jiang et al., "A Unified Architecture for Accelerating Distributed DNN
// Training in Heterogeneous GPU/CPU Clusters", OSDI 2020 (BytePS).
#pragma once

#include "kernels/base/result.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace shoal::kernels {

/// Rates in bit/s: 0, or from `slowest_rate` to `fastest_rate`, so that no sum or quotient
/// overflows.
inline constexpr double slowest_rate = 1e-3, fastest_rate = 1e15;

struct averaging_peer {
  double up = 0;
  double down = 0;
  bool contributes = true; // sends values: trains
  bool receives = true;    // wants the result
  bool reduces = true;     // can be given a part: others can reach it
};

/// All traffic from one peer to another, by their indices, passes at `rate` at most. A rate of 0
/// means that there is no way between them.
struct pair_limit {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  double rate = 0;
};

struct averaging_plan {
  std::vector<double> shares; // >= 0, sum 1
  /// The time of a round for each bit of the vector, in seconds.
  double seconds_per_bit = 0;
};

/// The best plan. The slowest line binds whatever the others do, so several plans may be best. The
/// result is the one in which the longest busy time of any reducer's line is the shortest, then the
/// second longest, and so on. So the plan moves little when rates do. With one or two senders or
/// receivers a line can be equally busy with any share; such peers share equally or not at all.
/// Errors: no sender, no receiver, or no peer that can reduce. Rates that are neither 0 nor in
/// their range. A sender without uplink or a receiver without downlink. A limit of unknown peers.
/// Pairs without a way such that no reducer is left.
/// Complexity: a few linear programs of 2 n rows and the pair limits that bind. If pair limits
/// shape the plan, up to 64 more, one for each of the longest times.
result<averaging_plan> plan_averaging(std::span<const averaging_peer> peers,
                                      std::span<const pair_limit> limits = {});

/// The same without pair limits and without a linear program: each reducer's share fills its line
/// up to one common level. Errors: as above. Complexity: about 120 steps of two bisections, O(n)
/// each.
result<averaging_plan> fill_lines(std::span<const averaging_peer> peers);

/// The time of a round with these shares for each bit of the vector, by the formula above. Infinity
/// if traffic would have to pass a rate of 0. Requires: shares [peers], limits name peers.
double seconds_per_bit(std::span<const averaging_peer> peers, std::span<const pair_limit> limits,
                       std::span<const double> shares);

/// Gives the shares below `smallest` (of 1) to the others, in proportion, unless all shares are
/// that small. A part of a few elements costs messages and saves nothing. Ensures: sum 1. Requires:
/// shares with a positive sum.
std::vector<double> without_small_shares(std::span<const double> shares, double smallest);

} // namespace shoal::kernels
