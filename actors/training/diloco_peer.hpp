// A training peer of DiLoCo takes local steps with an optimizer of its own. Then the peers average
// how far the local steps led each of them away from the outer parameters: the pseudo-gradient. The
// outer step is the same for all, so peers of one epoch hold the same outer state.
//
//   joining -> computing (local steps) -> averaging -> (outer step) -> computing ...
//                 |      \-- others went ahead: follow their outer steps, keep the local ones --/
//                 +--- no way to follow: give back samples, download the leading state --->
//                 computing
//
// Steps: 1. epoch e is the round of one fragment of the parameters (all of them, unless there are
//      several). The peer takes interval(e) local steps; `delay` steps before their end it gives
//      the pseudo-gradient of that fragment to the round, and goes on;
//   2. a round closes when all peers of its state are there, or, with a quorum, a grace period
//      after so many have come. A leader does not wait for those that, by their records, come
//      after the grace period;
//   3. after the last step of the interval the peer takes the outer step, and blends the outer
//      fragment into its local parameters.
// A latecomer's pseudo-gradient is not lost. The peer follows the outer steps of the others while
// it takes its local steps. Then it gives the distance from its first outer parameters to the next
// round. With a quorum of one this is asynchronous DiLoCo.
// The outer state (parameters, momentum) is what joiners download. Inner optimizers stay with their
// peers; a joiner's one begins anew. A checkpoint has the inner optimizer of the peer that wrote
// it. A sample is committed with the first round that a pseudo-gradient with its step is given to.
// Left out: weights (all pseudo-gradients weigh the same), more than one round at a time.
// Sources: Douillard et al., arXiv:2311.08105 (DiLoCo) and arXiv:2501.18512 (fragments, delay,
// blending); Liu et al., arXiv:2401.09135 (late pseudo-gradients, grace period).
#pragma once

#include "actors/training/diloco_options.hpp"
#include "actors/training/diloco_workload.hpp"
#include "actors/training/training_peer.hpp"

#include <memory>
#include <optional>
#include <vector>

namespace shoal::actors {

class diloco_peer : public training_peer {
public:
  /// Requires: the pool's workload is a diloco_workload.
  diloco_peer(caf::actor_config& config, host& on, peer_config options, diloco_options how,
              std::shared_ptr<state_pool> pool, caf::actor dht);
  void on_exit() override;

private:
  /// The result of a local step; shared with the compute thread.
  struct local_result {
    state_ptr local;
    double loss_sum = 0;
  };
  /// The result of an outer step.
  struct outer_result {
    state_ptr outer;
    payload local, anchor;
  };
  /// A round that succeeded and is not applied yet.
  struct average {
    payload mean; // padded
    group_id group;
    state_id after;
    std::uint64_t samples = 0;
  };

  void decide() override;
  void round_ended(const round_result& result) override;
  void discard_work() override;
  double missing_samples() const override;
  /// A round may close with `quorum` members, so as many may lead the others on.
  branch leading() const override {
    const auto enough = how_.quorum == 0 ? ~std::size_t{0} : std::size_t{how_.quorum};
    return others().leading(own_branch(), {}, enough);
  }
  state_ptr saved_state() const override;
  void state_adopted() override { discard_work(); }
  bool may_leave() const override { return !has_group() && !average_ && !applying_; }

  std::uint64_t interval() const { return work_->interval(state()->epoch); }
  /// Local steps after which the pseudo-gradient is given.
  std::uint64_t given_after() const;

  bool has_ended() const { return options_.epochs != 0 && state()->epoch >= options_.epochs; }
  /// False: a download of a state has begun instead.
  bool follow();
  void step_fetched(std::optional<taken_step> step);
  void followed(taken_step step, const state_ptr& after);

  void local_step();
  void local_step_done();

  bool round_due() const;
  /// Seconds until the peer of that record has taken its local steps; none: nobody knows.
  std::optional<double> seconds_until_done(const progress_table::entry& of) const;
  std::vector<expected_peer> expected() const;
  /// Until the slowest of the peers in this state has taken its local steps.
  duration longest_wait() const;
  void start_round();
  void give_up_round();
  void apply();
  void applied();

  const diloco_options how_;
  std::shared_ptr<const diloco_workload> work_;
  state_ptr local_; // the local parameters, and the inner optimizer
  state_ptr base_;  // the same at the last round, whose inner optimizer the peer falls back on
  state_ptr given_; // local_ when the steps before the round were done
  payload anchor_;  // the outer parameters that the local steps began with
  std::uint64_t steps_ = 0;          // since the last round
  duration done_{};                  // when the steps before the round were done
  duration not_before_{};            // the next attempt begins later
  std::uint64_t attempts_ = 0;       // at the round that is due
  unsigned missed_steps_ = 0;        // that could not be fetched, in a row
  bool contributes_ = false;         // to the round under way
  std::uint64_t samples_before_ = 0; // counted ones, when the round began
  std::optional<average> average_;
  bool applying_ = false; // an outer step
  state_id risked_;       // the state whose round failed for this peer after its group had begun
  state_id parent_;       // the state before the last outer step
  std::shared_ptr<local_result> next_local_;
  std::shared_ptr<outer_result> next_outer_;
};

} // namespace shoal::actors
