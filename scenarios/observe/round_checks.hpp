// What has to be true of one finished round (DESIGN section 5): all members hold the same bits, the
// denominator of each part is the weight of exactly those whose data is in it, mass is conserved.
#pragma once

#include "scenarios/observe/invariant.hpp"
#include "scenarios/observe/rounds.hpp"

namespace shoal::scenarios {

/// `same_bits`: every member that completed the round has the same values. Checked once a member.
void check_same_bits(const swarm_round& what, invariant& into);

/// `denominator`, for each part and member that completed the round:
///  - its parts are the same as everybody's: borders, senders, weight;
///  - senders are ascending members that contributed;
///  - the weight is the sum of their contributed weights;
/// and the outcome is `ok` exactly if no part lacks a member of weight above 0. (Of a member that
/// died before it contributed nobody knows here whether it had any: then both are right.)
void check_denominator(const swarm_round& what, invariant& into);

struct mass_options {
  double tolerance = 1e-5;
  /// What the codecs may leave out of contributions (as they are after one that drops values) and of means, as a fraction of
  /// the largest magnitude of a contribution's part (kernels::largest_loss); and, for float16, of values that are too small for it.
  double loss = 0, mean_loss = 0, loss_of_small = 0, mean_loss_of_small = 0;
  /// Larger magnitudes may be written as this (kernels::largest_value).
  double largest = std::numeric_limits<double>::infinity();
  /// Contributed values looked at in a round; above, only every k-th coordinate of a part, from a
  /// start that moves with the epoch, and each part's last one.
  std::uint64_t budget = 4'000'000;
};

/// `mass_conserved`: the parts tile the vector, every contribution is as long as the mean, and
///   |mean[j] - sum_i w_i x_i[j] / sum_i w_i| <= tolerance * sum_i w_i |x_i[j]| / sum_i w_i
///       + (loss + mean_loss + loss mean_loss) * sum_i w_i max_k |x_i[k]| / sum_i w_i + loss_of_small + mean_loss_of_small
/// over the senders i of j's part, summed in double here, x_i[j] as it is or cut off at +-largest. Of hollow payloads only sizes are
/// checked. Checked once a part.
void check_mass_conserved(const swarm_round& what, const mass_options& options, invariant& into);

} // namespace shoal::scenarios
