// A training peer of DeDLOC that computes the next batch while the last one is averaged, and the
// step made. A step is then taken with gradients that are one step old, all of them, at every peer:
//
//   state t+1 = step(state t, mean gradient of batch t+1 at state t-1)
//
// A peer at state t computes towards batch t+2, as its record says. Beside that the round on state
// t is under way, to which it gave what it had computed at state t-1, and which ends in state t+1;
// that is kept and not used before batch t+2 is full. Then the peer goes over to it, enters the
// next round with what it has just computed, and goes on computing there. If the round is not over
// by then, it waits: the batch is no larger than without overlap. So a step lasts as long as the
// longer of the two, and not as long as both.
//   overlap::update: it computes nothing during the round itself; only the step, which the host's
//   processor may make, is beside it.
// The first epoch only fills this pipeline: a step without a gradient, which every peer makes alone
// (and again, when nobody who is left knows of a round any more). A round that fails is tried again
// with the same gradients. Who has missed one (a joiner, too: it came while it was going on)
// downloads the step from those who have its result, while it computes: so it goes over to the next
// state with the others, and loses nothing but what was in that round. Source: delayed gradient
// averaging and delayed parameter updates: Diskin et al., arXiv:2106.10207, section 3.1; Ren et
// al., "ZeRO-Offload", arXiv:2101.06840, section 5.2; Zhu et al., "Delayed Gradient Averaging",
// NeurIPS 2021.
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

  /// What the round on our state is given.
  struct batch {
    std::shared_ptr<const gradient_sum> sum; // null when it is averaged
    std::uint64_t samples = 0;
  };
  /// What a round has led to.
  struct next_step {
    state_ptr state;
    group_id group;            // zero: no round of ours
    std::uint64_t fetched = 0; // bytes, if we downloaded it
  };

  // What decide() asks, in its order. `lead` is the leading branch.
  bool is_behind(const branch& lead) const { return !(lead == own_branch()); }
  /// Whether the peer is with the others. One that is still joining begins to be, or downloads.
  bool takes_part(const branch& lead);
  /// The round on the peer's state is still to come for it.
  bool round_is_open() const;
  /// That round has no gradients, and all go on without it.
  bool round_is_empty(const branch& lead) const;
  /// Its contributors are too few for a group, or nobody can reach them: a peer that came late
  /// makes up the group, with nothing.
  bool must_make_up_group() const;
  /// The others have gone over to the state that the peer keeps for the next step.
  bool have_crossed(const branch& lead) const;
  /// The result of the round is to be got now, by averaging or from those who have it.
  bool needs_result(const branch& lead) const;
  void find_result();
  bool may_compute(const branch& lead) const;

  branch branch_of(const model_state& state) const {
    return {state.epoch, state.samples, state.id};
  }
  /// Where the step leads that needs no round: to our own state, one epoch on.
  branch empty_step() const;
  state_ptr make_empty_step() const;
  bool passes() const;
  /// What was for the round on our state, to the shard.
  void give_back_given();
  /// Samples in the contributions to the round on our state.
  std::uint64_t contributions_known() const;
  /// Goes over to the next state, and starts the round on it.
  void cross();
  void average();
  void wait(bool for_round);
  void step_fetched(std::optional<taken_step> step);

  const overlap_options how_;
  std::optional<batch> given_;
  std::optional<next_step> ahead_;
  std::uint64_t fetched_ = 0; // bytes of the step that is being repeated
  bool waiting_ = false;      // the batch is full, the round not over
};

} // namespace shoal::actors
