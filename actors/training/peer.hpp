// A training peer of DeDLOC: computes gradients at its own pace, and with everybody else steps
// when the swarm has accumulated the target batch. It decides everything itself from the records of
// the others.
//
//   joining -> computing -> averaging -> (step) -> computing ...
//                  |            |
//                  +--- out of sync: give back samples, download the leading state ---> computing
//
// Source: Diskin et al., "Distributed Deep Learning in Open Collaborations", arXiv:2106.10207.
#pragma once

#include "actors/training/training_peer.hpp"

#include <memory>
#include <vector>

namespace shoal::actors {

/// The method is one branch for all, whose steps everybody can repeat.
class peer : public training_peer {
public:
  peer(caf::actor_config& config, host& on, peer_config options, std::shared_ptr<state_pool> pool,
       caf::actor dht)
      : peer(config, on, std::move(options), {.repeats_steps = true}, std::move(pool),
             std::move(dht)) {}
  void on_exit() override;

protected:
  peer(caf::actor_config& config, host& on, peer_config options, method_traits traits,
       std::shared_ptr<state_pool> pool, caf::actor dht)
      : training_peer(config, on, std::move(options), traits, std::move(pool), std::move(dht)),
        contribution_(this->pool()->shared_work(), options_.codecs) {}

  /// What one compute job writes; shared with the compute thread.
  struct gradient_sum {
    std::vector<double> values;
    double loss_sum = 0;
  };

  void decide() override;
  void round_ended(const round_result& result) override;
  void discard_work() override { sum_ = std::make_shared<gradient_sum>(); }
  double missing_samples() const override;
  branch leading() const override { return others().leading(own_branch()); }
  bool may_leave() const override {
    return current_mode() != mode::averaging && current_mode() != mode::stepping;
  }
  void state_adopted() override { contribution_.forget(); }

  std::uint64_t samples_known() const;
  /// Our share of what is still missing, by speed, so that the swarm overshoots little; 0: the
  /// others are computing it.
  std::uint64_t next_job_samples() const;

  bool nearly_there() const;
  void compute_next();
  void gradient_done();

  std::vector<expected_peer> expected() const {
    return others().expected_on(state()->epoch, state()->id, parent_);
  }
  duration others_jobs() const;
  void start_round();
  /// Until the next attempt: the others need time to see that this one is over, too.
  duration pause_after_failure();
  /// Computes next_state_ from what the round averaged.
  void start_step(const round_result& result);
  void make_step(const payload& gradient, const state_id& after, std::uint64_t weight);
  /// The step of the job that has ended.
  taken_step made_step(const state_ptr& next);
  virtual void step_done();

  state_id parent_; // of the state before our last step
  std::shared_ptr<gradient_sum> sum_;
  contribution
      contribution_; // what the peer gives to rounds, and what is left of it for later ones
  std::uint64_t round_attempts_ = 0;
  duration not_before_{};                 // of the next attempt
  std::shared_ptr<state_ptr> next_state_; // written by the step job
  group_id step_group_;
  payload step_gradient_; // of the step job
  duration stepped_{};    // when we took our last step
  bool idle_ = false;     // the others are computing the rest
};

} // namespace shoal::actors
