// Checks one finished round (docs/design.md, section 5). All members hold the same bits. The
// denominator of each part is the weight of exactly those senders whose data is in the part. Mass
// is conserved.
#pragma once

#include "actors/averaging/aggregator.hpp"
#include "scenarios/observe/invariant.hpp"
#include "scenarios/observe/rounds.hpp"

#include <functional>

namespace shoal::scenarios {

/// `same_bits`: every member that completed the round has the same values. One check a member.
void check_same_bits(const swarm_round& what, invariant& into);

/// `denominator`, for each part and member that completed the round:
///  - the member's parts equal the parts of the other members: borders, senders, weight;
///  - the senders are ascending members that contributed;
///  - the weight is the sum of the senders' contributed weights.
/// The outcome is `ok` exactly if no part lacks a member of weight above 0. A member that died
/// before it contributed may have had weight or not: `ok` and `partial` are then both right.
void check_denominator(const swarm_round& what, invariant& into);

struct mass_options {
  actors::aggregate_tolerance allowed;
  /// The number of contributed values that are checked in a round. Above this number the check
  /// takes every k-th coordinate of a part and the part's last one. The first coordinate moves with
  /// the epoch.
  std::uint64_t budget = 4'000'000;
  const actors::aggregator_definition* aggregator =
      &actors::mean_aggregator(); ///< the run's aggregator
  /// The aggregator's options, and the size of a chunk. The check adds the round's values.
  actors::aggregation_setting setting{};
  /// False for peers whose conduct is an attack. Empty: all are honest. No observer knows what an
  /// attacker sent. A part with an attacker among its senders is not compared. The same holds for
  /// a part that an attacker may have reduced.
  std::function<bool(actors::peer_id)> honest{};
};

/// `mass_conserved`: the parts tile the vector, and every contribution is as long as the result.
/// Each interval of the result is what the run's aggregator makes of the senders' contributions,
/// as the aggregator's definition verifies it (for the mean: actors/averaging/aggregator_mean.hpp).
/// For payloads of a size only, the check compares sizes. One check a part. Parts that an attacker
/// may have reduced do not count: to find false ones is the members' task.
void check_mass_conserved(const swarm_round& what, const mass_options& options, invariant& into);

} // namespace shoal::scenarios
