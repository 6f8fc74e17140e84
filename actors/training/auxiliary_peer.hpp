// A host that lends its line: it takes part in every round of the synchronous method and reduces parts for the others, and
// neither trains nor holds a model. It knows of the swarm what the records say, like everybody.
//   It follows the leading branch; when that has the target batch it joins the round (weight 0, takes no result). Its own record says
//   that it is on its way to that branch (`arriving`): so the others wait for it, and nobody asks it for a state.
// Memory: parts that it reduces, and one vector of zeros.
// Source: Diskin et al., arXiv:2106.10207, section 3.2 (auxiliary peers: c_i = 0).
#pragma once

#include <memory>

#include "actors/training/volunteer.hpp"

namespace shoal::actors {

class auxiliary_peer final : public volunteer {
 public:
  auxiliary_peer(caf::actor_config& config, host& on, peer_config options, std::shared_ptr<state_pool> pool, caf::actor dht);
  void on_exit() override;

 private:
  void decide() override;
  void job_done(std::uint64_t) override {}
  void on_report(const round_result& result) override;
  void forget_gradients() override {}
  double missing_samples() const override;
  std::uint64_t current_epoch() const override { return followed_.epoch; }
  std::vector<peer_id> donors() const override { return {}; }
  branch leading() const override { return others_.leading({0, 0, state_->id}); }
  void describe(progress& mine) const override;

  std::vector<expected_peer> expected() const { return expected_on(followed_.epoch, followed_.state, before_); }
  /// The branch that we follow has a round now.
  bool round_due() const;
  std::uint64_t round_samples() const;
  void start_round();

  branch followed_;                  // as our record says
  state_id before_;                  // the branch that we followed before
  duration moved_{};                 // when we left that
  branch averaged_;                  // of the last round that we were in
  duration not_before_{};            // of the next attempt
  contribution gives_;               // zeros
};

}  // namespace shoal::actors
