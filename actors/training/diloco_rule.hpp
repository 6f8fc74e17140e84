// DiLoCo in small groups, another one each round (actors/training/moshpit_peer.hpp). Peers of
// different groups do not hold the same outer state. So each takes an outer step alone, and the
// group averages the outer states. An outer step is linear. So equal outer states take the
// outer step with the mean pseudo-gradient, and unequal ones come closer to each other.
//   contribution = (x', v'), the outer step from the shared state with g = shared - own
//   next: shared = the mean; own = shared + what the peer's steps during the round have changed
#pragma once

#include "actors/training/outer_rule.hpp"
#include "kernels/outer_optimizer.hpp"

namespace shoal::actors {

class diloco_rule final : public outer_rule {
public:
  /// Requires: validate(outer), no delay.
  explicit diloco_rule(kernels::outer_optimizer_config outer) : outer_(outer) {}
  payload contribution(const model_state& own, const model_state& shared) const override;
  result after(const averaged_round& round, const workload& work) const override;
  bool takes_no_device_time() const override { return true; }

private:
  kernels::outer_optimizer_config outer_;
};

} // namespace shoal::actors
