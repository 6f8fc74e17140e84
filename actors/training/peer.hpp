// A training peer of DeDLOC. It computes gradients at its own pace. When the swarm has accumulated
// the target batch, all peers step together. Each peer decides from the records of the others.
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

/// The training peers of DeDLOC share one branch, and every peer can repeat its steps.
class peer : public training_peer {
public:
  peer(caf::actor_config& config, host& on, peer_config options, std::shared_ptr<state_pool> pool,
       caf::actor dht)
      : peer(config, on, options,
             {.repeats_steps = true,
              .proves_steps = true,
              .most_samples = most_claimed(options),
              .most_weight = most_claimed(options)},
             std::move(pool), std::move(dht)) {}
  void on_exit() override;

protected:
  peer(caf::actor_config& config, host& on, peer_config options, method_traits traits,
       std::shared_ptr<state_pool> pool, caf::actor dht)
      : training_peer(config, on, std::move(options), traits, std::move(pool), std::move(dht)),
        contribution_(this->pool()->shared_work(), options_.codecs) {}

  /// The output of one compute job, shared with the compute thread.
  struct gradient_sum {
    std::vector<double> values;
    double loss_sum = 0;
  };

  void decide() override;
  void round_ended(const round_result& result) override;
  void discard_work() override {
    sum_ = std::make_shared<gradient_sum>();
    blocks_.clear();
  }
  double missing_samples() const override;
  branch leading() const override { return best_branch(); }
  /// More than any peer counts: with all samples of a step, it stops computing.
  static std::uint64_t most_claimed(const peer_config& options) {
    return options.target_batch + options.micro_batch;
  }
  bool may_leave() const override {
    return current_mode() != mode::averaging && current_mode() != mode::stepping;
  }
  void state_adopted() override {
    contribution_.forget();
    // The failed rounds were from another state. They say nothing about the samples on this one.
    round_attempts_ = 0;
  }

  std::uint64_t samples_known() const;
  /// The peer's share of the missing samples, by speed, so that the swarm overshoots little. 0: the
  /// others are computing them.
  std::uint64_t next_job_samples() const;

  /// True if the samples that others claim may not exist. Rounds fail then, and a job of this peer
  /// would have ended meanwhile.
  bool doubts_claims() const;
  /// An attempt at a round on this state begins.
  void count_attempt() {
    if (round_attempts_++ == 0) first_attempt_ = now();
  }
  bool nearly_there() const;
  void compute_next();
  void gradient_done();

  std::vector<expected_peer> expected() const {
    return others().expected_on(state()->epoch, state()->id, parent_);
  }
  duration others_jobs() const;
  void start_round();
  /// The pause before the next attempt. The others need time to see that this attempt is over.
  duration pause_after_failure();
  /// Computes next_state_ from the result of the round.
  void start_step(const round_result& result);
  void make_step(const payload& gradient, const state_id& after, std::uint64_t weight);
  /// The step that the ended job has made.
  taken_step made_step(const state_ptr& next);
  virtual void step_done();

  state_id parent_; // id of the state before the last step
  std::shared_ptr<gradient_sum> sum_;
  std::vector<sample_range> blocks_; // in sum_, in the order in which they were added
  // The peer's contribution to rounds, and its residual.
  contribution contribution_;
  std::uint64_t round_attempts_ = 0;
  duration first_attempt_{};              // time of the first attempt from this state
  duration not_before_{};                 // earliest time of the next attempt
  std::shared_ptr<state_ptr> next_state_; // written by the step job
  step_ptr step_taken_;                   // the proof of the step job
  std::vector<step_part> step_parts_;     // the parts of step_gradient_
  group_id step_group_;
  payload step_gradient_; // the gradient of the step job
  duration stepped_{};    // time of the last step
  bool idle_ = false;     // the others are computing the missing samples
};

} // namespace shoal::actors
