// Checks one finished round (docs/design.md, section 5): all members hold the same bits, the
// denominator of each part is the weight of exactly those senders whose data is in it, and mass is
// conserved.
#pragma once

#include "actors/averaging/aggregator.hpp"
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
  actors::aggregate_tolerance allowed;
  /// Contributed values looked at in a round; above, only every k-th coordinate of a part, from a
  /// start that moves with the epoch, and each part's last one.
  std::uint64_t budget = 4'000'000;
  const actors::aggregator_definition* aggregator = &actors::mean_aggregator(); ///< of the run
};

/// `mass_conserved`: the parts tile the vector, every contribution is as long as the result, and
/// each stretch of the result is what the run's aggregator makes of its senders' contributions, as
/// its definition verifies it. For the mean see actors/averaging/aggregator_mean.hpp. Of size-only
/// payloads only sizes are checked. Checked once a part.
void check_mass_conserved(const swarm_round& what, const mass_options& options, invariant& into);

} // namespace shoal::scenarios
