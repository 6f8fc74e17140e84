// What peers that take optimizer steps of their own give to a round of averaging, and the state
// that they make of its mean.
//   Moshpit SGD (the delta rule): contribution = parameters x; next = mean + (x now - x when the
//   round began) DiLoCo, for comparison:       contribution = shared - x; next = an outer SGD step
//   from `shared` with that mean as the gradient, and
//                                 the outer momentum in model_state::method_state
// A rule may contribute a part of the parameters only, which follows from the epoch. Rules are
// values without a state of their own: what they must remember is in the states that they are
// given.
#pragma once

#include "actors/training/workload.hpp"

namespace shoal::actors {

/// A round that ended well, as one member sees it.
struct averaged_round {
  const model_state& now; ///< the peer's own state, with the steps that it took during the round
  const model_state& contributed; ///< the same when the round began
  const model_state& shared;      ///< the peer's state after the last round
  const payload& mean;            ///< of the contributions
};

class outer_rule {
public:
  virtual ~outer_rule() = default;

  /// The values that a peer gives to the round on `own`; its state after the last round was
  /// `shared`. They have the same size at all members of a group. Called in the actor.
  virtual payload contribution(const model_state& own, const model_state& shared) const = 0;

  struct result {
    model_state shared; ///< what the peer serves, and begins the next round from; epoch and id are
                        ///< set by the caller
    model_state own; ///< what it computes with: `shared`, and what its own steps during the round
                     ///< add to that
  };
  /// The states after the round. Called on a compute thread: it must be a pure function.
  virtual result after(const averaged_round& round, const workload& work) const = 0;
};

/// The parameters, and `with_optimizer` the optimizer's state, are averaged; what a peer's own
/// steps during the round have changed is added to the mean. What it serves has that, too.
class delta_rule final : public outer_rule {
public:
  explicit delta_rule(bool with_optimizer) : with_optimizer_(with_optimizer) {}
  payload contribution(const model_state& own, const model_state& shared) const override;
  result after(const averaged_round& round, const workload& work) const override;

private:
  bool with_optimizer_;
};

} // namespace shoal::actors
