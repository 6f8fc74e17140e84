// One volunteer: streams samples, computes gradients at its own pace, and with everybody else steps
// when the swarm has accumulated the target batch (DeDLOC). It owns its device, its rounds and its
// downloads, and decides everything itself from the records of the others.
//
//   joining -> computing -> averaging -> (step) -> computing ...
//                  |            |
//                  +--- out of sync: give back samples, download the leading state ---> computing
//
// Source: Diskin et al., "Distributed Deep Learning in Open Collaborations", arXiv:2106.10207.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "actors/averaging/deadline.hpp"
#include "actors/averaging/round.hpp"
#include "actors/device/device.hpp"
#include "actors/protocol_actor.hpp"
#include "actors/reachability.hpp"
#include "actors/training/progress.hpp"
#include "actors/training/state_fetcher.hpp"
#include "actors/training/state_pool.hpp"
#include "kernels/base/stats.hpp"

namespace shoal::actors {

struct peer_config {
  std::uint64_t target_batch = 256;
  std::uint64_t micro_batch = 8;
  std::uint64_t epochs = 0;                 ///< stop computing after so many; 0: never
  std::uint32_t prefetch_samples = 64;
  duration min_refresh = std::chrono::milliseconds(200);
  duration max_refresh = std::chrono::seconds(5);
  duration record_lifetime = std::chrono::seconds(15);
  device_profile device;
  averaging_config averaging;
  fetch_config fetch;
  reachability_config reachability;
  std::size_t max_donors = 3;
};

class peer final : public protocol_actor {
 public:
  /// `dht` is the DHT node of this host.
  peer(caf::actor_config& config, host& on, peer_config options, std::shared_ptr<state_pool> pool,
       caf::actor dht);

  /// tick{drain} tells a peer to leave: it ends the round it is in, hands back its samples, takes its
  /// record back and computes no more. It goes on serving its state.
  static constexpr std::uint32_t drain = 100;

  caf::behavior make_behavior() override;
  void on_exit() override;

 private:
  enum class mode { joining, computing, averaging, stepping, downloading, stopped };
  enum timer : std::uint32_t { refresh_timer, retry_timer, data_timer, look_timer, look_again_timer };
  enum token : std::uint64_t { progress_token, shard_token };
  enum job : std::uint64_t { gradient_job = 1, step_job = 2 };

  struct sample_block {
    sample_range range;
    payload data;
  };
  /// What one compute job writes; shared with the compute thread.
  struct gradient_sum {
    std::vector<double> values;
    double loss_sum = 0;
  };
  struct running_job {
    std::vector<sample_block> blocks;
    std::uint64_t samples = 0;
    duration started{};
    bool discard = false;            // its state is no longer ours
  };

  /// The shard is gone: another incarnation of it may be found.
  void on_down(const caf::actor_addr& whom) override;

  // records
  void refresh();
  void publish();
  void on_commit_received(const commit_received& what);
  void on_found(const found& answer);
  void decide();
  branch own_branch() const;
  /// Ours towards the next step, those of the running job included: they are as good as here.
  std::uint64_t promised() const;
  std::uint64_t samples_known() const;
  /// Our share of what is still missing, by speed, so that the swarm overshoots little; 0: the others
  /// are computing it.
  std::uint64_t next_job_samples() const;
  void announce();
  void enter(mode next);

  // data
  void request_samples();
  void on_samples(samples& message);
  void on_lease_lost(const lease_lost& message);
  std::vector<sample_range> held() const;

  // computing
  void compute_next();
  void gradient_done();
  void give_back_gradients();
  void leave();

  // averaging
  std::vector<expected_peer> expected() const;
  void start_round();
  void on_report(const round_result& result);
  void send_commit(const round_result& result);
  void start_step(const round_result& result);
  void step_done();

  // state sharing
  void start_download();
  void on_state(const state_ptr& state);
  void on_state_request(const state_request& message);
  void on_chunk_request(const state_chunk_request& message);

  // reachability
  void look_around();
  void greet();
  void looked();
  void on_address_query(const address_query& message);
  void on_dial_request(const dial_request& message);
  void on_dial_answer(const dial_answer& message);
  void on_dialled(const dialled& message);
  /// What we can offer a group: our line, if it can be reached.
  std::uint64_t reducing_rate() const;

  peer_config options_;
  std::shared_ptr<state_pool> pool_;
  caf::actor dht_, shard_, device_, group_, fetcher_;
  caf::actor former_shard_;  // the last one that was lost
  static constexpr std::size_t most_uncommitted = 64;
  std::deque<commit> uncommitted_;  // not answered by the shard yet
  rng backoff_;
  reachability reach_;
  dial_helper helper_;
  duration first_look_{};
  std::set<peer_id> greeted_;                       // who can be reached, and through that reach us
  mode mode_ = mode::joining;
  state_ptr state_;
  state_id parent_;                                 // of the state before our last step
  progress_table others_;
  bool heard_ = false;                              // progress was read at least once

  std::deque<sample_block> available_;
  std::uint32_t requested_ = 0;                     // credit given and not yet used by the shard
  duration last_samples_{};

  std::shared_ptr<gradient_sum> sum_;
  std::vector<sample_range> accumulated_;
  std::uint64_t samples_ = 0;                       // in sum_
  std::vector<sample_range> in_round_;              // of the contribution under way
  std::optional<running_job> running_;
  ema speed_;
  std::set<peer_id> tried_donors_;                  // since the last state that we got
  std::optional<branch> arriving_;                  // what we are downloading, if it will not take long
  bool draining_ = false;
  std::uint64_t round_attempts_ = 0;
  duration not_before_{};                           // of the next attempt
  adaptive_deadline gathering_;                     // how long a group that we lead may take to find together
  duration download_not_before_{};

  std::shared_ptr<state_ptr> next_state_;           // written by the step job
  group_id step_group_;
  std::deque<state_ptr> served_;                    // states that joiners may be downloading
  std::uint64_t state_bytes_asked_ = 0;
  duration last_publish_{-1};
  duration stepped_{};                              // when we took our last step
};

}  // namespace shoal::actors
