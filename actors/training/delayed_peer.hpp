// A DeDLOC training peer that computes the next batch while the last one is averaged and the step
// is made. All peers then take each step with gradients that are one step old:
//
//   state t+1 = step(state t, mean gradient of batch t+1 at state t-1)
//
// A peer at state t computes towards batch t+2, as its record says. At the same time, the round on
// state t runs. Its contributions were computed at state t-1, and its result is state t+1. The peer
// keeps that state until batch t+2 is full. The peer then crosses over: it moves to state t+1,
// enters the next round with the gradients that it has just computed, and computes on. If the round
// is not over by then, the peer waits, so batches are no larger than without overlap. A step thus
// takes as long as the longer of computing and averaging, rather than their sum.
//
// With overlap::update, the peer computes nothing during the round itself. Only the optimizer step,
// which the host's processor may make, overlaps with computing.
//
// The first epoch only fills this pipeline. It ends with a step without a gradient, which every
// peer makes alone. Peers repeat that empty step when no live peer knows of a round. A failed round
// is tried again with the same gradients. A peer that missed a round, such as a joiner, downloads
// the step from peers that have it, while it computes. It then crosses over together with the
// others, and loses only what it gave to that round.
//
// The contributors of a round may be too few to end it. A hostile one of three members can refuse
// each majority. The other peers would wait for them for ever. So a peer that has waited for the
// time of a whole round gives its full batch to that round, and computes the batch anew.
//
// Source: delayed gradient averaging and delayed parameter updates: Diskin et al.,
// arXiv:2106.10207, section 3.1; Ren et al., "ZeRO-Offload", arXiv:2101.06840, section 5.2; Zhu et
// al., "Delayed Gradient Averaging", NeurIPS 2021.
#pragma once

#include "actors/training/overlap_options.hpp"
#include "actors/training/peer.hpp"

#include <memory>
#include <optional>

namespace shoal::actors {

class delayed_peer final : public peer {
public:
  delayed_peer(caf::actor_config& config, host& on, peer_config options, overlap_options how,
               std::shared_ptr<state_pool> pool, caf::actor dht);
  void on_exit() override;

private:
  void decide() override;
  void round_ended(const round_result& result) override;
  void step_done() override;
  void discard_work() override;
  void describe(progress& mine) const override;
  bool may_leave() const override { return !has_group() && !next_state_; }
  /// A peer that has made the next step goes over with the first one that has. Others wait for more
  /// members, since nothing proves what one says.
  branch leading() const override {
    std::optional<branch> next;
    if (ahead_) next = branch_of(*ahead_->state);
    return others().leading(own_branch(), next);
  }

  /// The contribution to the round on the peer's state.
  struct batch {
    std::shared_ptr<const gradient_sum> sum; // null once it is averaged
    std::uint64_t samples = 0;
  };
  /// The result of a round.
  struct next_step {
    state_ptr state;
    group_id group;            // zero if the peer was in no round
    std::uint64_t fetched = 0; // bytes of the download, if there was one
  };

  // The questions of decide(), in its order. `lead` is the leading branch.
  bool is_behind(const branch& lead) const { return !(lead == own_branch()); }
  /// True if the peer keeps pace with the swarm. A joining peer starts computing here, or
  /// downloads.
  bool takes_part(const branch& lead);
  /// True if the round on the peer's state is still to come for this peer.
  bool round_is_open() const;
  /// True if that round has no gradients, and the swarm goes on without it.
  bool round_is_empty(const branch& lead) const;
  /// True if the contributors of the round are too few for a group, or cannot be reached. A peer
  /// without a contribution then joins them with an empty one.
  bool must_make_up_group() const;
  /// True if the peer has given nothing to the round, and has waited too long for its contributors.
  bool must_help_out() const;
  /// True if those that say they have the round's result do not give it away.
  bool doubts_results() const { return failed_fetches_ >= 2; }
  /// True if the other peers have crossed over to the state that this peer keeps for the next step.
  bool have_crossed(const branch& lead) const;
  /// True if the peer now needs the result of the round, by averaging or by download.
  bool needs_result(const branch& lead) const;
  void find_result();
  bool may_compute(const branch& lead) const;

  branch branch_of(const model_state& state) const {
    return {state.epoch, state.samples, state.id};
  }
  /// The branch after a step without a round: the same state, one epoch later.
  branch empty_step() const;
  state_ptr make_empty_step() const;
  bool passes() const;
  /// Returns the samples of the contribution to the shard.
  void give_back_given();
  /// The samples in all known contributions to the round on the peer's state.
  std::uint64_t contributions_known() const;
  /// The computed samples become the contribution to the round on the peer's state. Requires: no
  /// job is running.
  void give_computed();
  /// Moves to the next state and starts its round.
  void cross();
  void average();
  void wait(bool for_round);
  void step_fetched(std::optional<taken_step> step);

  const overlap_options how_;
  std::optional<batch> given_;
  std::optional<next_step> ahead_;
  std::uint64_t fetched_ = 0;        // bytes of the step that is being repeated
  bool waiting_ = false;             // the batch is full, and the round is not over
  std::uint32_t failed_fetches_ = 0; // since the last round or step
  duration waits_since_{};           // when that began, or the peer left its state
};

} // namespace shoal::actors
