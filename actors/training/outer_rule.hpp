// An outer rule belongs to a method whose peers take local optimizer steps. It makes a peer's
// contribution to a round, and the peer's next state from the mean.
//     Moshpit SGD (the delta rule):
//       contribution = parameters x
//       next = mean + (x now - x when the round began)
//     DiLoCo, for comparison:
//       contribution = shared - x
//       next = an outer SGD step from `shared` with the mean as the gradient;
//              the outer momentum is in model_state::method_state
// A rule may contribute only a part of the parameters, chosen by the epoch. Rules have no state of
// their own: everything that they must remember is in the states.
#pragma once

#include "actors/training/workload.hpp"

namespace shoal::actors {

/// A successful round, as one member sees it.
struct averaged_round {
  const model_state& now; ///< the peer's own state, with the steps that it took during the round
  const model_state& contributed; ///< the peer's own state when the round began
  const model_state& shared;      ///< the peer's state after the last round
  const payload& mean;            ///< the mean of the contributions
};

class outer_rule {
public:
  virtual ~outer_rule() = default;

  /// The peer's contribution to the round on `own`. `shared` is its state after the last round. The
  /// size is the same for all members of a group. Called in the actor.
  virtual payload contribution(const model_state& own, const model_state& shared) const = 0;

  struct result {
    /// The state that the peer serves, and begins the next round from. The caller sets epoch and
    /// id.
    model_state shared;
    /// The state that the peer computes with: `shared`, and the changes of its own steps during the
    /// round.
    model_state own;
  };
  /// The states after the round. A pure function; it is called on a compute thread.
  virtual result after(const averaged_round& round, const workload& work) const = 0;
  /// Whether after() is no work of the device, as an optimizer step would be.
  virtual bool takes_no_device_time() const { return false; }
};

/// to + (now - from); `to` itself if nothing changed meanwhile.
payload shifted(const payload& now, const payload& from, payload to);

/// Averages the parameters and, with `with_optimizer`, the optimizer's state. Adds to the mean the
/// changes that the peer's own steps made during the round. The shared state has these changes,
/// too, unless they lead to values that are not finite.
class delta_rule final : public outer_rule {
public:
  explicit delta_rule(bool with_optimizer) : with_optimizer_(with_optimizer) {}
  payload contribution(const model_state& own, const model_state& shared) const override;
  result after(const averaged_round& round, const workload& work) const override;

private:
  bool with_optimizer_;
};

} // namespace shoal::actors
