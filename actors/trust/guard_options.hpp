// The options of Byzantine-tolerant rounds (Gorbunov et al., "Secure Distributed Training at
// Scale", arXiv:2106.11257). All members of a swarm use the same ones.
#pragma once

#include "kernels/base/units.hpp"

#include <cstdint>

namespace shoal::actors {

struct guard_options {
  /// Contributions of a round that validators compute again: m of the paper.
  std::uint32_t validators = 1;
  /// The clipping radius tau of the whole vector, for `base_batch` samples. The aggregator clips a
  /// chunk of c of d values and a contribution of b samples at tau sqrt(c / d) sqrt(base_batch /
  /// b).
  double radius = 1;
  std::uint64_t base_batch = 1;
  /// If more than half of the weight is farther from a part's result than this, the members compute
  /// the part again (check V3). 0: no such check.
  double most_distance = 0;
  /// A member without a commitment after this time gives nothing to the round.
  duration commit_time = std::chrono::seconds(5);
  /// A member that does not reveal, check or audit in this time has missed that duty.
  duration duty_time = std::chrono::seconds(30);
  /// A member stays at most so long after its round, for audits, cases and other members' duties.
  static constexpr duration longest_stay(duration duty_time) { return 8 * duty_time; }
  /// The members that decide a case. 0: all but the accuser and the accused.
  std::uint32_t jurors = 0;
  /// Rounds in which a newcomer's contribution has weight 0.
  std::uint32_t probation = 0;

  bool operator==(const guard_options&) const = default;
};

} // namespace shoal::actors
