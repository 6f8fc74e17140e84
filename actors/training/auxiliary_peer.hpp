// An auxiliary peer lends its line to the synchronous method. It takes part in every round and
// reduces parts for other peers. It neither trains nor holds a model.
//
// An auxiliary peer follows the leading branch, as the records of the other peers show it. When
// that branch has the target batch, the auxiliary peer joins the round with weight 0 and takes no
// result. Its own record says `arriving`: the others wait for it in the round, and no peer asks it
// for a state.
//
// Memory: the parts that it reduces, and one vector of zeros.
//
// Source: Diskin et al., arXiv:2106.10207, section 3.2 (auxiliary peers: c_i = 0).
#pragma once

#include "actors/training/overlap_options.hpp"
#include "actors/training/training_peer.hpp"

#include <memory>

namespace shoal::actors {

class auxiliary_peer final : public training_peer {
public:
  /// `swarm` holds the overlap options of the training peers.
  auxiliary_peer(caf::actor_config& config, host& on, peer_config options, overlap_options swarm,
                 std::shared_ptr<state_pool> pool, caf::actor dht);
  void on_exit() override;

private:
  void decide() override;
  void round_ended(const round_result& result) override;
  void discard_work() override {}
  double missing_samples() const override;
  branch leading() const override { return others().most_followed({0, 0, state()->id}); }
  branch position() const override { return followed_; }
  void describe(progress& mine) const override;

  std::vector<expected_peer> expected() const {
    return others().expected_on(followed_.epoch, followed_.state, before_);
  }
  /// True if the followed branch has its round now.
  bool round_due() const;
  std::uint64_t round_samples() const;
  void start_round();

  const overlap_options swarm_;
  branch followed_;           // the branch in this peer's record
  state_id before_;           // the branch that the peer followed before
  duration moved_{};          // when the peer left that branch
  branch averaged_;           // the branch of the peer's last round
  duration not_before_{};     // earliest time of the next attempt
  contribution contribution_; // zeros only
};

} // namespace shoal::actors
