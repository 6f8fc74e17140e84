// A training peer of Moshpit SGD: takes optimizer steps of its own on parameters of its own, and
// every so often averages them in a small group, another one each time, so that everybody's
// parameters stay close to everybody's mean.
//
//   joining -> computing (local steps; a round runs beside them) -> computing ...
//                  |
//                  +--- out of sync: give back samples, download a state of the leading round --->
//                  computing
//
// Steps: 1. it is at round `epoch` and lives at the coordinates C, d - 1 digits of a grid of side M
// and dimension d, drawn at first;
//   2. a round is due when the peers that are about have made local_steps steps on average since
//   the last one, or when half of the
//      swarm is ahead; so a slow peer takes part with the steps that it has made;
//   3. it finds those with the same round and coordinates (matchmaking), and they average the
//   parameters with equal weights;
//   4. local steps go on meanwhile. The average A of what was x0 when the round began becomes x = A
//   + (x - x0): the delta rule
//      (of the optimizer's state, if it is averaged, the average);
//   5. C := (C[2..], c), c its index in the group plus an offset that the group shares, modulo M:
//   who was in one group of at most M is in
//      different ones for the next d - 1 rounds. Without success (no retry) the digit is drawn.
//      Whose own parameters are not finite when a round begins goes back to the last average, and
//      gives back the samples since.
//   6. who finds nobody goes on to the next round, with its parameters as they are.
// Bounded staleness: whose last average is more than max_staleness rounds old, by where half of the
// swarm is, downloads. Who is ahead
//   of that half has been cut off with few others: it waits, and makes no more local steps than
//   those of max_staleness rounds.
// A sample is committed with the round that averages parameters that it has changed. A peer alone
// averages nothing, and commits
//   nothing, unless it knows of nobody else and the shard answers.
// Local updates (hivemind's use_local_updates) are the same with a grid of one dimension, so that
// the whole swarm is one group, and
//   local_batch: a round is due when the swarm has computed target_batch samples.
// Left out: momentum and moments stay local unless average_optimizer says otherwise; progress is
// one table that everybody reads, as in the synchronous method, so that some hundred peers can
// train, not a million. Source: Ryabinin et al., "Moshpit SGD", arXiv:2103.03239, algorithms 1 and
// 2; coordinates as in section 3.2.
#pragma once

#include "actors/training/moshpit_options.hpp"
#include "actors/training/outer_rule.hpp"
#include "actors/training/training_peer.hpp"

#include <memory>
#include <vector>

namespace shoal::actors {

class moshpit_peer : public training_peer {
public:
  moshpit_peer(caf::actor_config& config, host& on, peer_config options, moshpit_options how,
               std::shared_ptr<state_pool> pool, caf::actor dht);
  /// The same with another outer rule, whose states have `method_state_bytes` of method_state, or
  /// none.
  moshpit_peer(caf::actor_config& config, host& on, peer_config options, moshpit_options how,
               std::shared_ptr<const outer_rule> rule, std::uint64_t method_state_bytes,
               std::shared_ptr<state_pool> pool, caf::actor dht);
  void on_exit() override;

private:
  /// What a compute job writes; shared with the compute thread.
  struct job_result {
    state_ptr state;
    state_ptr shared; // of a round
    double loss_sum = 0;
  };

  void decide() override;
  void round_ended(const round_result& result) override;
  void discard_work() override;
  double missing_samples() const override;
  branch leading() const override { return {swarm_epoch(), 0, {}}; }
  branch position() const override { return {state()->epoch, state()->samples, meeting()}; }
  state_ptr shared_state() const override { return averaged_; }
  bool prefers(const model_state& offered) const override;
  void state_adopted() override;
  bool may_leave() const override { return !has_group() && !average_; }

  /// Names the group of this round.
  state_id meeting() const;
  std::uint32_t any_digit();
  void draw_place();
  void move_to(std::uint32_t digit);
  std::uint64_t swarm_epoch() const { return others().median_epoch(state()->epoch); }
  bool stale() const { return swarm_epoch() > mixed_ + how_.max_staleness; }
  /// There is nobody else, and it is not we who are cut off.
  bool lone() const { return others().entries().empty() && has_shard(); }
  bool exhausted() const;
  bool round_due() const;
  std::vector<expected_peer> expected() const;
  void start_round();
  void skip_round();
  void round_over();
  void step();
  void step_done();
  void apply();
  void applied();

  const moshpit_options how_;
  const std::shared_ptr<const outer_rule> rule_;
  rng draws_;
  std::vector<std::uint32_t> coordinates_; // d - 1 digits
  state_ptr
      averaged_; // our state after the last round; state() has the local steps since then, too
  std::shared_ptr<job_result> next_;
  std::uint64_t samples_before_ = 0; // counted ones, when the round began
  std::uint64_t mixed_ = 0; // epoch of our last average, or of the state that we downloaded
  std::uint64_t steps_ = 0; // since the last round that succeeded

  /// A round that succeeded and is not applied yet.
  struct average {
    state_ptr from; // what we contributed
    payload values;
    group_id group;
    std::uint32_t digit = 0;
  };
  state_ptr contributed_; // to the round under way
  std::optional<average> average_;
  bool applying_ = false;
};

} // namespace shoal::actors
