// A training peer of Moshpit SGD. It takes optimizer steps of its own on its own parameters. From
// time to time it averages them in a small group. Groups have different members each time, so that
// the parameters of all peers stay close to their mean.
//
//   joining -> computing (local steps, concurrently with a round) -> computing ...
//                |                                                      ^
//                +- out of sync: give back samples, download a state ---+
//
// Steps:
// 1. The peer is at round `epoch` and at coordinates C: d - 1 digits of a grid of side M and
//   dimension d. The first coordinates are random.
// 2. A round is due when the known peers have made local_steps steps on average since the last
//   round. It is also due when half of the swarm is ahead. A slow peer takes part with the steps
//   that it has made.
// 3. Matchmaking finds the peers with the same round and coordinates. They average their parameters
//   with equal weights.
// 4. Local steps continue meanwhile. With x0 the parameters when the round began and A their
//   average, the new parameters are x = A + (x - x0): the delta rule. The optimizer's state, if it
//   is averaged, becomes its average.
// 5. C := (C[2..], c). The digit c is the index in the group plus an offset that the group shares,
//   modulo M. Members of one group of at most M are then in different groups for the next d - 1
//   rounds. After a failed round, which is not retried, c is random. A peer with parameters that
//   are not finite goes back to its last average and gives back the samples since then.
// 6. A peer that finds no group goes on to the next round with its own parameters.
//
// Bounded staleness: a peer downloads a state if its last average is more than max_staleness rounds
// behind the median of the swarm. A peer ahead of the median was cut off with a few others. It
// waits for the swarm after the local steps of max_staleness rounds.
//
// A sample is committed with the round that averages parameters that the sample has changed. A peer
// alone averages and commits nothing, unless it knows of no other peer and the shard answers.
//
// Local updates (hivemind's use_local_updates) are the case of a grid of one dimension, with the
// whole swarm as one group. With local_batch, a round is due when the swarm has computed
// target_batch samples.
//
// Left out: momentum and moments stay local unless average_optimizer is set. All peers read one
// table of progress, as in the synchronous method, so the method serves hundreds of peers, not a
// million.
//
// Source: Ryabinin et al., "Moshpit SGD", arXiv:2103.03239, algorithms 1 and 2; coordinates as in
// section 3.2.
#pragma once

#include "actors/averaging/moshpit_place.hpp"
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
  /// The same with another outer rule. `method_state_bytes` is the size of its
  /// model_state::method_state; 0 if it has none.
  moshpit_peer(caf::actor_config& config, host& on, peer_config options, moshpit_options how,
               std::shared_ptr<const outer_rule> rule, std::uint64_t method_state_bytes,
               std::shared_ptr<state_pool> pool, caf::actor dht);
  void on_exit() override;

private:
  /// The output of a compute job, shared with the compute thread.
  struct job_result {
    state_ptr state;
    state_ptr shared; // set by a round
    double loss_sum = 0;
  };

  void decide() override;
  void round_ended(const round_result& result) override;
  void discard_work() override;
  double missing_samples() const override;
  branch leading() const override { return {swarm_epoch(), 0, {}}; }
  branch position() const override {
    return {state()->epoch, state()->samples, place_.group(state()->epoch)};
  }
  state_ptr shared_state() const override { return averaged_; }
  bool prefers(const model_state& offered) const override;
  void state_adopted() override;
  bool may_leave() const override { return !has_group() && !average_; }

  std::uint64_t swarm_epoch() const { return others().median_epoch(state()->epoch); }
  bool stale() const { return swarm_epoch() > mixed_ + how_.max_staleness; }
  /// True if this peer knows of no other peer and is not cut off itself, since the shard answers.
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
  moshpit_place place_;
  // The state after the last round. state() has the local steps since then, too.
  state_ptr averaged_;
  std::shared_ptr<job_result> next_;
  std::uint64_t samples_before_ = 0; // samples counted when the round began
  // Epoch of the last average, or of the downloaded state.
  std::uint64_t mixed_ = 0;
  std::uint64_t steps_ = 0; // local steps since the last successful round

  /// A successful round that is not applied yet.
  struct average {
    state_ptr from; // the contribution
    payload values;
    group_id group;
    std::uint32_t digit = 0;
  };
  state_ptr contributed_; // to the round under way
  std::optional<average> average_;
  bool applying_ = false;
};

} // namespace shoal::actors
