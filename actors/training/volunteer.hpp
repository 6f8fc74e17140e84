// What every training peer is, whatever its method: it streams samples from the shard, owns a device, tells the others of its
// progress and reads theirs, learns how it can be reached, downloads a state when it is out of sync and serves its own, and
// tells the shard what became of its samples. The method (actors/training/peer.hpp, moshpit_peer.hpp) decides what to compute, when to
// average with whom, and what to do with the result.
//
// No joiner downloads for ever. Who is out of sync downloads the leading state once. If the swarm has gone on when it is here, it downloads
// the steps that it has missed, one after the other, and repeats them; its donors keep them for it (actors/training/state_shelf.hpp has
// the argument why that ends). Who has missed few steps only, and whose state is larger than these, downloads no state at all. When nobody
// has the next step any more, it starts over from a newer state. Whose line is too slow falls further behind with each step, by
// most_further_behind at last, or starts over most_states_in_vain times: it says so (download_ended, too_slow) and keeps away, each time
// twice as long, before it tries again.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "actors/averaging/deadline.hpp"
#include "actors/averaging/rate_book.hpp"
#include "actors/averaging/round.hpp"
#include "actors/data/messages.hpp"
#include "actors/conduct/conduct.hpp"
#include "actors/data/shard_replica.hpp"
#include "actors/device/device.hpp"
#include "actors/dht/messages.hpp"
#include "actors/protocol_actor.hpp"
#include "actors/reachability.hpp"
#include "actors/reachability/messages.hpp"
#include "actors/training/contribution.hpp"
#include "actors/training/overlap.hpp"
#include "actors/training/messages.hpp"
#include "actors/training/progress.hpp"
#include "actors/training/state_fetcher.hpp"
#include "actors/training/state_pool.hpp"
#include "actors/training/state_shelf.hpp"
#include "kernels/base/stats.hpp"
#include "kernels/mixing.hpp"

namespace shoal::actors {

struct peer_config {
  std::uint64_t target_batch = 256;
  std::uint64_t micro_batch = 8;
  std::uint64_t epochs = 0;                 ///< stop computing after so many; 0: never
  std::uint32_t prefetch_samples = 64;
  duration min_refresh = std::chrono::milliseconds(200);
  duration max_refresh = std::chrono::seconds(5);
  duration record_lifetime = std::chrono::seconds(15);
  actors::overlap overlap = overlap::none;
  device_profile device;
  averaging_config averaging;
  std::shared_ptr<actors::conduct> conduct = honest_conduct();   ///< of this host; in its rounds, too
  averaging_codecs codecs;                  ///< of what is averaged
  fetch_config fetch;
  reachability_config reachability;
  std::uint64_t max_uploads = 8;            ///< joiners that we send a state to at the same time
  std::uint64_t checkpoint_every = 0;       ///< epochs; 0: never
  /// Called in the actor when a step of its own has led to such an epoch, by every peer that gets there; the first one may write it
  /// down. `data_from`: all sample indices that led to the state are below it. Not a message: it concerns this host's disk alone.
  std::function<void(const state_ptr& state, std::uint64_t data_from)> on_checkpoint;
  // Of those who average parameters (actors/training/moshpit_peer.hpp)
  bool local_batch = false;                 ///< a round is due with target_batch, not with local_steps
  std::uint64_t local_steps = 8;            ///< of each peer between two rounds, on average over the swarm
  kernels::grid grid;
  std::uint64_t max_staleness = 4;          ///< a peer whose last average is more rounds old downloads
  bool average_optimizer = false;           ///< the optimizer's state, too
};

class volunteer : public protocol_actor {
 public:
  /// tick{drain} tells a peer to leave: it ends the round it is in, hands back its samples, takes its
  /// record back and computes no more. It goes on serving its state.
  static constexpr std::uint32_t drain = 100;

  caf::behavior make_behavior() final;
  void on_exit() override;

 protected:
  /// `dht` is the DHT node of this host.
  volunteer(caf::actor_config& config, host& on, peer_config options, std::shared_ptr<state_pool> pool, caf::actor dht);

  enum class mode { joining, computing, averaging, stepping, downloading, stopped };
  struct sample_block {
    sample_range range;
    payload data;
  };
  struct running_job {
    std::vector<sample_block> blocks;
    std::uint64_t samples = 0;
    duration started{};
    bool discard = false;            // its state is no longer ours
    std::vector<sample_range> ranges() const;
  };

  // What a method decides.
  /// Something is new: records, samples, the end of a job.
  virtual void decide() = 0;
  virtual void job_done(std::uint64_t token) = 0;
  virtual void on_report(const round_result& result) = 0;
  /// Throws away what was computed and not averaged; its samples are given back by who calls this.
  virtual void forget_gradients() = 0;
  /// Samples until the next round, with what the others will have computed by now.
  virtual double missing_samples() const = 0;
  /// Whose peers' speeds are those of the next round.
  virtual std::uint64_t current_epoch() const { return state_->epoch; }
  /// Those who have what we should download.
  virtual std::vector<peer_id> donors() const = 0;
  /// A step is the same for all who take it: who has missed one can repeat it.
  virtual bool shares_steps() const { return false; }
  /// Where the best of them are.
  virtual branch leading() const = 0;
  /// What our record says of us besides what everybody's does.
  virtual void describe(progress&) const {}
  /// The state that others may download.
  virtual state_ptr shared_state() const { return state_; }
  /// Whether a downloaded state is worth more than ours.
  virtual bool wants(const model_state& offered) const { return branch{offered.epoch, offered.samples, offered.id}.leads(own_branch()); }
  /// The shard has taken these back, or heard from others what became of them.
  virtual void lost(const std::vector<sample_range>&) {}
  /// What fetch_step() brought; nothing: it failed.
  virtual void step_fetched(std::optional<taken_step>) {}
  /// A downloaded state was adopted.
  virtual void adopted_state() {}
  /// Not while a round or a step is under way.
  virtual bool may_leave() const { return mode_ != mode::averaging && mode_ != mode::stepping; }

  // records
  void publish();
  void announce();
  void look_up_progress();
  branch own_branch() const { return {state_->epoch, state_->samples, state_->id}; }
  /// Ours towards the next step, those of the running job included: they are as good as here.
  std::uint64_t promised() const;
  void enter(mode next);
  void try_again_in(duration pause) { set_timer(pause, retry_timer); }

  // data
  void request_samples();
  std::uint64_t samples_here() const;
  /// At most so many of those that are here. Requires: some are.
  running_job take_samples(std::uint64_t wanted);
  void compute(std::function<void()> work, std::uint64_t samples, std::uint64_t token, bool step = false);
  /// The job that has just ended; nothing if its state is no longer ours: then its samples are given back.
  std::optional<running_job> finished_job();
  void measure_speed(const running_job& job);
  void give_back_gradients();
  /// What was our state until now goes to those who download. `step`: the step that we took from it, if shares_steps().
  void keep_served(const state_ptr& state, std::optional<taken_step> step = {});
  void leave();
  /// A step of our own has led here; `round` is what it averaged.
  void note_round(const round_result& round);
  void checkpoint_if_due();

  // averaging
  reached_by reached() const;
  /// Those on that branch who are not through with its round, and those who were on it when it was one step behind, at `parent`: they
  /// are just stepping.
  std::vector<expected_peer> expected_on(std::uint64_t epoch, const state_id& state, const state_id& parent) const;
  /// Samples a second of all who make up the next round.
  double swarm_speed() const { return speed_.value() + others_.samples_per_second_near(current_epoch()); }
  /// With what every request has: who we are, and in_round_.
  void start_group(round_request request, averaging_config how);
  /// What it says of others' lines and of how long gathering takes.
  void learn_from(const round_result& result);
  void send_commit(const round_result& result);
  void start_download();
  /// Whether that can be the step from our state; counts who sent another one.
  bool follows_ours(const taken_step& step);
  /// Downloads the step that leads on from our state while we go on computing; step_fetched() follows, unless nobody has it.
  void fetch_step();

  peer_config options_;
  std::shared_ptr<state_pool> pool_;
  caf::actor dht_, shard_, device_, group_, fetcher_;
  rng backoff_;
  reachability reach_;
  mode mode_ = mode::joining;
  state_ptr state_;
  progress_table others_;
  bool heard_ = false;                              // progress was read at least once
  bool draining_ = false;
  bool streams_ = true;                             // samples from the shard
  bool has_state_ = true;                           // that others may download

  std::deque<sample_block> available_;
  std::vector<sample_range> accumulated_;           // computed, and in no round yet
  std::uint64_t samples_ = 0;                       // in accumulated_ and in_round_
  std::vector<sample_range> in_round_;              // of the contribution under way
  std::optional<running_job> running_;
  bool fetching_aside_ = false;                     // fetch_step() is under way
  ema speed_;
  rate_book rates_;                                 // of the others' lines
  int missed_groups_ = 0;                           // lately; with each we look for one for longer
  adaptive_deadline gathering_;                     // how long a group that we lead may take to find together

 private:
  enum timer : std::uint32_t { refresh_timer, retry_timer, data_timer, look_timer, look_again_timer, shard_timer };
  enum token : std::uint64_t { progress_token, shard_token };
  static constexpr std::uint64_t repeat_job = 1000;   // among the jobs of a method

  /// Until the next record and look-up.
  duration next_refresh() const;
  void on_tick(const tick& message);
  /// The shard is gone: another incarnation of it may be found.
  void on_down(const caf::actor_addr& whom) override;
  void refresh();
  void refresh_in(duration wait);
  /// One of several replicas of the shard, or the one that there is.
  struct shard_record {
    caf::actor address;
    std::optional<replica_record> replica;  // nothing: it runs alone
  };
  bool has_replicas() const;
  void on_shards(const std::vector<shared<record>>& records);
  /// Asks the best of `shards_` that is not lost; of those that are lost only with `desperate`.
  void choose_shard(bool desperate);
  void adopt_shard(const caf::actor& shard);
  void on_not_primary(const not_primary& what);
  bool is_shard(const caf::strong_actor_ptr& whom) const;
  void leave_shard();
  void look_up_shards();
  void plan_shards(duration wait);
  /// Tells the shard, until it answers.
  void hand_in(commit round);
  void on_commit_received(const commit_received& what);
  void on_found(const found& answer);
  void on_samples(samples& message);
  void on_lease_lost(const lease_lost& message);
  std::vector<sample_range> held() const;

  fetch_config fetch_on_our_line() const;
  std::vector<expected_peer> whom_to_ask(std::vector<peer_id> ids, std::size_t most);
  void on_donors_wanted(const donors_wanted& what);
  void on_download_nears_end(const download_nears_end& what);
  void on_download(const download_report& report);
  void repeat_step();
  void step_repeated();
  /// Ours is now what we downloaded, or what it became by a step.
  void now_at(state_ptr state, std::uint64_t bytes, bool of_step = false);
  /// We are with the others again.
  void arrived();
  bool in_sync() const { return leading() == own_branch(); }
  void on_state_request(const state_request& message);
  void on_state_hold(const state_hold& message);
  void on_chunk_request(const state_chunk_request& message);

  void look_around();
  void greet();
  void looked();
  void on_address_query(const address_query& message);
  void on_dial_request(const dial_request& message);
  void on_dial_answer(const dial_answer& message);
  void on_dialled(const dialled& message);

  std::deque<caf::actor_addr> former_shards_;       // the last few that we left: what they had sent may still come
  std::vector<shard_record> shards_;                // as last read
  duration looked_for_shards_{duration::min()};
  bool shards_planned_ = false;
  std::deque<caf::actor_addr> lost_shards_;         // of several: whom we left because it was gone
  unsigned referrals_ = 0;                          // times that we were sent to one of those, and got nothing
  std::deque<commit> uncommitted_;                  // of rounds that led to our state, not answered by the shard yet
  std::uint32_t requested_ = 0;                     // credit given and not yet used by the shard
  duration last_samples_{};
  duration last_publish_{-1};
  duration refresh_at_{};                           // the next one
  std::uint64_t refresh_ = 0;                       // names its timer
  payload published_;                               // what our record says
  duration entered_{};                              // the mode that we are in

  dial_helper helper_;
  duration first_look_{};
  std::set<peer_id> greeted_;                       // who can be reached, and through that reach us

  std::set<peer_id> tried_donors_;                  // since the last state that we got
  std::set<peer_id> liars_;                         // who sent what was not what it had offered
  std::vector<peer_id> holders_;                    // who had what we downloaded last, and so keeps the steps from it on
  std::shared_ptr<state_download> download_;        // under way, or to be gone on with
  bool downloading_step_ = false;                   // of a download that we wait for
  bool catching_up_ = false;                        // we have downloaded a state, and the swarm has gone on meanwhile
  std::uint64_t behind_at_first_ = 0;               // how many steps, when we began to
  state_id no_step_from_;                           // nobody had the step from this state on
  unsigned states_in_vain_ = 0, pauses_ = 0;        // downloaded since we were last in sync
  std::shared_ptr<state_ptr> repeated_;             // written by the job
  std::optional<taken_step> step_;                  // that it repeats
  std::optional<branch> arriving_;                  // what we are downloading, if it will not take long
  duration download_not_before_{};
  state_shelf shelf_;
  std::uint64_t data_from_ = 0;                     // all indices in rounds that we saw are below it
  std::uint64_t state_bytes_asked_ = 0;
};

}  // namespace shoal::actors
