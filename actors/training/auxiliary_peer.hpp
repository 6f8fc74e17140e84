// A host that lends its line: it takes part in every round of the synchronous method and reduces
// parts for the others, and neither trains nor holds a model. It knows of the swarm what the
// records say, like everybody.
//   It follows the leading branch; when that has the target batch it joins the round (weight 0,
//   takes no result). Its own record says that it is on its way to that branch (`arriving`): so the
//   others wait for it, and nobody asks it for a state.
// Memory: parts that it reduces, and one vector of zeros.
// Source: Diskin et al., arXiv:2106.10207, section 3.2 (auxiliary peers: c_i = 0).
#pragma once

#include "actors/training/overlap_options.hpp"
#include "actors/training/training_peer.hpp"

#include <memory>

namespace shoal::actors {

class auxiliary_peer final : public training_peer {
public:
  /// `swarm`: what the swarm does.
  auxiliary_peer(caf::actor_config& config, host& on, peer_config options, overlap_options swarm,
                 std::shared_ptr<state_pool> pool, caf::actor dht);
  void on_exit() override;

private:
  void decide() override;
  void round_ended(const round_result& result) override;
  void discard_work() override {}
  double missing_samples() const override;
  branch leading() const override { return others().leading({0, 0, state()->id}); }
  branch position() const override { return followed_; }
  void describe(progress& mine) const override;

  std::vector<expected_peer> expected() const {
    return others().expected_on(followed_.epoch, followed_.state, before_);
  }
  /// The branch that we follow has a round now.
  bool round_due() const;
  std::uint64_t round_samples() const;
  void start_round();

  const overlap_options swarm_;
  branch followed_;           // as our record says
  state_id before_;           // the branch that we followed before
  duration moved_{};          // when we left that
  branch averaged_;           // of the last round that we were in
  duration not_before_{};     // of the next attempt
  contribution contribution_; // zeros
};

} // namespace shoal::actors
