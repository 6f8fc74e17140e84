// The assignment of roles and rates that gives a swarm the most optimizer steps per second. It says
// which peers compute gradients, which ones reduce, and how fast everything passes. This is the
// whole program of DeDLOC. averaging_plan is its part for a given group and equal parts of every
// vector.
//   data: s_i samples/s, u_i and d_i bit/s, t_ij bit/s of a pair (0: no way), B samples a step,
//         P bits of the vector
//   variables: c_i in {0, 1} computes; a_ij rate at which i sends its values of what j reduces;
//              g_ij rate at which i returns means to j
//   maximise  min(sum_i s_i c_i / B,  min over receivers j of (sum_i g_ij) / P)      steps/s,
//             if computing and averaging overlap
//   subject to  g_ij <= a_ki for all i, j and all k != i with c_k = 1
//               (a mean cannot be returned before all values have come)
//               sum_j (a_ij + g_ij) <= u_i,  sum_j (a_ji + g_ji) <= d_i,
//               a_ij + g_ij <= t_ij over j != i
// g_jj, of what j reduces itself, passes no line. An optimum has a_ki = m_i, the same for all
// senders k, so the variables are m and g. The peers that compute are the k fastest. More of them
// compute faster and average no faster, so a bisection finds the best k.
//
// As published, a place of the vector may have several reducers, and every sender sends the place
// to each of them. sum_i m_i is then above the rate of averaging. This can pay, because a peer that
// reduces a place needs no other peer's mean of it. The result is then only a bound, because the
// program does not ask whether every receiver can put its means together from disjoint places. With
// `each_place_once`, sum_i m_i is that rate, and the program is averaging_plan's.
// Source: Diskin et al., "Distributed Deep Learning in Open Collaborations", arXiv:2106.10207,
// section 3.2 and appendix.
#pragma once

#include "kernels/averaging_plan.hpp"
#include "kernels/base/result.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace shoal::kernels {

struct dedloc_peer {
  double samples_per_second = 0; // 0: never computes
  double up = 0;                 // bit/s, as in averaging_peer
  double down = 0;
  bool receives = true;
  bool reduces = true;
};

struct dedloc_plan {
  double steps_per_second = 0;
  double compute_steps_per_second = 0;   // the bound by computing alone
  double averaging_steps_per_second = 0; // the bound by averaging alone
  std::vector<bool> computes;
  std::vector<double> values; // a [n, n], bit/s
  std::vector<double>
      results; // g [n, n], bit/s; the diagonal is the rate at which a peer reduces for itself
};

/// Errors: rates or speeds out of range. No peer that computes, receives or can reduce. A batch or
/// vector that is not positive. No way between peers that would have to average.
/// Complexity: log2(n) linear programs of n^2 variables and rows; meant for n <= 32 or so.
result<dedloc_plan> plan_dedloc(std::span<const dedloc_peer> peers,
                                std::span<const pair_limit> limits, double target_batch,
                                double vector_bits, bool each_place_once = false);

/// The same for given c. Requires: computes [peers].
result<dedloc_plan> plan_dedloc_for(std::span<const dedloc_peer> peers,
                                    std::span<const pair_limit> limits, double target_batch,
                                    double vector_bits, const std::vector<bool>& computes,
                                    bool each_place_once = false);

} // namespace shoal::kernels
