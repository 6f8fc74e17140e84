// The base of all training peers. It streams samples from the shard, owns a device, and exchanges
// progress records. It finds out how it can be reached, downloads a state when it is out of sync,
// and serves its own. It translates messages. Plain state machines decide: shard_client,
// progress_publisher, reach_agent, state_catch_up, round_tracker, held_samples, state_cache.
//
// A training method (peer.hpp, moshpit_peer.hpp, ...) derives from this class. It decides when to
// compute, when and with which peers to average, what to contribute, and how to use the result. It
// implements the virtual functions below, and calls the others:
// - compute(work, samples, then) runs a job on the device and then calls `then` in the actor.
// - start_group(request, how) looks for a group and averages `request.values`, which may be a part
//   of the parameters. `how` has the minimum group size, and `request.max_wait` the time that a
//   leader waits for latecomers.
// - set_state(state) takes a step of the method's own. keep_served(before, step) keeps the former
//   state for downloads.
// - start_download() moves to the leading branch. fetch_step() downloads one step while the peer
//   computes.
//
// With method_traits::proves_steps, the peer keeps the chain of its branch
// (actors/training/chain_follower.hpp). The method passes each of its steps to stepped_by(), and
// moves only to states of proven branches.
//
// A method with a state beyond the optimizer's keeps it in model_state::method_state, which is part
// of downloads.
#pragma once

#include "actors/averaging/audit_duty.hpp"
#include "actors/averaging/round.hpp"
#include "actors/data/proof_messages.hpp"
#include "actors/protocol_actor.hpp"
#include "actors/training/chain_follower.hpp"
#include "actors/training/held_samples.hpp"
#include "actors/training/peer_config.hpp"
#include "actors/training/progress.hpp"
#include "actors/training/state_catch_up.hpp"
#include "actors/training/state_pool.hpp"
#include "kernels/base/stats.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace shoal::actors {

/// The properties of a method as a whole.
struct method_traits {
  bool streams_samples = true; ///< false: a peer of this method computes nothing
  bool serves_state = true;    ///< the peer has a state that others may download
  /// Peers on one branch hold the same bits. False: each peer has its own parameters.
  bool one_branch = true;
  /// All peers take the same step, so a peer that has missed one can repeat it.
  bool repeats_steps = false;
  bool overlaps_rounds = false; ///< rounds run while peers compute
  bool steps_locally = false;   ///< a sample changes the peer's own parameters at once
  std::uint64_t method_state_bytes =
      0; ///< size of model_state::method_state; 0 if states have none
  /// A peer that computes while the others step follows them by fetch_step(), and keeps its work.
  bool follows_steps = false;
  bool untimed_rounds = false; ///< the step after a round takes no time of the device
  /// Each step is the result of one certified round, so the states have a chain. A branch then
  /// leads only if its chain does.
  bool proves_steps = false;
  /// The bound on the samples that one record may claim; 0: none.
  std::uint64_t most_samples = 0;
  /// The bound on the weight of one member in a round; 0: none.
  std::uint64_t most_weight = 0;
};

class training_peer : public protocol_actor {
public:
  /// tick{drain} tells a peer to leave. It ends its round, hands back its samples, withdraws its
  /// record and computes no more. It goes on serving its state.
  static constexpr std::uint32_t drain = 100;

  ~training_peer() override;
  caf::behavior make_behavior() final;
  void on_exit() override;

protected:
  /// `dht` is the DHT node of this host.
  training_peer(caf::actor_config& config, host& on, peer_config options, method_traits traits,
                std::shared_ptr<state_pool> pool, caf::actor dht);

  enum class mode { joining, computing, averaging, stepping, downloading, stopped };

  // The decisions of a method.

  /// Decides what to do next; called whenever records, samples, a job or a timer may have changed
  /// the answer.
  virtual void decide() = 0;
  /// Handles the end of the round of start_group(), successful or not.
  virtual void round_ended(const round_result& result) = 0;
  /// Drops computed work that is not averaged. The caller gives the samples back.
  virtual void discard_work() = 0;
  /// The samples that are missing until the next round is due, less those that the others are
  /// expected to have computed by now.
  virtual double missing_samples() const = 0;
  /// The branch that the peer should be on: that of the best peers.
  virtual branch leading() const = 0;
  /// The branch in the peer's record: it works for the next round of that branch.
  virtual branch position() const { return own_branch(); }
  /// Adds the method's own fields to the peer's record. Not called while the peer joins or
  /// downloads.
  virtual void describe(progress&) const {}
  /// The state that others may download.
  virtual state_ptr shared_state() const { return state(); }
  /// The state that checkpoints contain.
  virtual state_ptr saved_state() const { return shared_state(); }
  /// True if a downloaded state is better than the peer's own.
  virtual bool prefers(const model_state& offered) const {
    if (follower()) return follower()->may_adopt({offered.epoch, offered.id});
    return branch{offered.epoch, offered.samples, offered.id}.leads(own_branch());
  }
  /// state() has become a downloaded state, or the result of a repeated step. Drops what belonged
  /// to the former state.
  virtual void state_adopted() {}
  /// True if the peer may leave now, because it has no round and no unapplied result.
  virtual bool may_leave() const { return !has_group(); }

  // The services for a method.

  const state_ptr& state() const;
  /// Takes the state after a step of the method's own.
  void set_state(state_ptr next);
  const std::shared_ptr<state_pool>& pool() const;
  const progress_table& others() const;
  held_samples& held();
  const held_samples& held() const;
  mode current_mode() const noexcept { return mode_; }
  bool heard() const noexcept { return heard_; }
  bool draining() const noexcept { return draining_; }
  const std::optional<chain_follower>& follower() const;
  /// The branch that leads. With proves_steps its chain is proven, else records claim it.
  branch best_branch() const;
  /// True while a question may still prove another branch; for at most a few timeouts after the
  /// peer has begun to join.
  bool branch_is_open() const;
  /// The state after the step by this round, and the proof if there is a chain.
  step_ptr step_by(const round_result& round) const;
  /// The peer's own step has led to state().
  void stepped_by(const step_ptr& step);
  branch own_branch() const { return {state()->epoch, state()->samples, state()->id}; }
  rng& backoff() noexcept { return backoff_; }

  void enter(mode next);
  /// The same without an observation, for a peer that is in sync with no branch.
  void enter_silently(mode next) { mode_ = next; }
  void try_again_in(duration pause) { set_timer(pause, retry_timer); }
  void leave();

  // Records.
  /// Publishes the peer's record if it has changed.
  void publish();
  /// Publishes the record out of turn, and reads the others' records.
  void announce();
  void look_up_progress();
  /// The samples towards the next step, with those of the running job.
  std::uint64_t promised() const { return held().promised(); }

  // Data and computing.
  bool has_shard() const;
  void request_samples();
  /// Takes at most `most` ready samples. Requires: some are ready.
  sample_job take_samples(std::uint64_t most);
  /// Runs `work` on a compute thread; it must not touch the actor. `is_step`: it takes an optimizer
  /// step, too.
  void compute(std::function<void()> work, std::uint64_t samples, std::function<void()> then,
               bool is_step = false);
  /// The job that has just ended. Empty if the peer has left its state meanwhile; its samples are
  /// then given back.
  std::optional<sample_job> finished_job();
  void measure_speed(const sample_job& job);
  /// Starts the computation of a contribution that the peer owes as a validator or a juror, if one
  /// is due and no job is running. True if one runs: the peer's next batch waits for it.
  bool audit_next();
  /// True if this peer's contributions do not count yet (actors/trust/probation.hpp).
  bool on_probation() const;
  double speed() const { return speed_.value(); }
  /// Samples per second of all peers in the next round.
  double swarm_speed() const;
  /// Discards work under way, and gives its samples back.
  void give_back_work();
  /// Gives back only the samples of the contribution under way.
  void give_back_contribution();

  // Averaging.
  reached_by reached() const;
  /// True if the peer knows how it is reached, if waiting for that knowledge is of no use, or if no
  /// peer could tell.
  bool may_lead() const;
  bool has_group() const;
  /// Completes the request with the peer's identity and the samples of the round, and starts a
  /// group actor.
  void start_group(round_request request, averaging_config how);
  /// Tells the group actor which peers are expected now.
  void tell_group(std::vector<expected_peer> expected, std::uint64_t known_samples);
  void cancel_group();
  void send_commit(const round_result& result);
  void on_proof_wanted(const proof_wanted& message);
  /// Remembers the data of a round from which a step of the method's own was made.
  void note_round(const round_result& round);
  void checkpoint_if_due();

  // States.
  /// Keeps the former state for downloads. `step` was taken from it; empty if other peers cannot
  /// repeat it.
  void keep_served(const state_ptr& former, std::optional<taken_step> step = {});
  std::vector<peer_id> donors() const;
  void start_download();
  /// Downloads the step that leads on from state() while the peer computes. `then` gets the step;
  /// empty if the download failed. If no peer has the step, `then` is not called.
  void fetch_step(std::function<void(std::optional<taken_step>)> then);
  bool fetches_step() const;
  /// True if the step can lead on from state(). Otherwise counts the misbehaviour.
  bool follows_state(const taken_step& step);

  const peer_config options_;

private:
  enum timer : std::uint32_t {
    refresh_timer,
    retry_timer,
    data_timer,
    look_timer,
    look_again_timer,
    shard_timer,
    chain_timer
  };
  enum token : std::uint64_t { progress_token, shard_token };
  struct parts;
  template <class Peer>
  friend class shard_io;

  void on_tick(const tick& message);
  void on_down(const caf::actor_addr& whom) override;
  void on_found(const found& answer);
  void on_work_done(const work_done& message);

  progress own_record() const;
  duration next_refresh() const;
  void refresh();
  void refresh_in(duration wait);
  void withdraw_record();

  void on_samples(const result<bool>& came);
  void on_lease_lost(const lease_lost& message);

  // training_peer_audits.cpp
  void on_audit(const audit_duty& message);
  template <class Copies>
  void on_copies(const Copies& message);
  void on_missed(const duty_missed& message);
  void look_after_audits();
  /// Gives up the audits whose samples do not come, and those whose time is over.
  void give_up_late_audits();
  /// The state of this id: the peer's own, one of its last, or one of a round that may be audited.
  state_ptr recent_state(const state_id& id) const;
  /// Keeps the state of a round that begins, for audits of its members.
  void keep_judged_state();
  /// Tells the request which members sit out, and which ones are on probation.
  void judge_members(round_request& request) const;

  void look_around();
  void looked();
  void on_address_query(const address_query& message);
  void on_dial_answer(const dial_answer& message);

  state_catch_up::situation situation() const;
  void pause_download(const state_catch_up::plan& plan);
  bool is_fetcher(const caf::strong_actor_ptr& sender) const;
  void on_donors_wanted(const donors_wanted& what);
  void on_download_nears_end(const download_nears_end& what);
  void on_download(const download_report& report);
  void repeat_step(taken_step step);
  void step_repeated(taken_step step, const state_ptr& after);
  void remember_groups();
  /// state() becomes a downloaded state, or the result of a repeated step.
  void adopt(state_ptr next, std::uint64_t bytes, bool whole, bool of_step);

  void go_back_to_begin();
  void ask_for_chains();
  void ask(const chain_follower::question& what);
  void lost_claimant(const caf::actor_addr& whom);
  void on_chain_request(const chain_request& message);
  void on_chain_answer(const chain_answer& message);

  void on_state_request(const state_request& message);
  void on_state_hold(const state_hold& message);
  void on_chunk_request(const state_chunk_request& message);

  const method_traits traits_;
  // All addresses and states; on_exit() drops them.
  std::unique_ptr<parts> parts_;
  rng backoff_;
  mode mode_ = mode::joining;
  duration entered_{}; // when the current mode began
  bool heard_ = false; // the others' records were read at least once
  bool draining_ = false;
  ema speed_;
  std::uint64_t last_job_ = 0;
  std::uint64_t data_from_ = 0;         // above all indices in rounds that the peer saw
  std::uint64_t state_bytes_asked_ = 0; // bytes requested since the last offer
};

} // namespace shoal::actors
