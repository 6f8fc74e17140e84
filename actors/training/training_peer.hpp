// A training peer, whatever its method: it streams samples from the shard, owns a device, tells the
// others of its progress and reads theirs, learns how it can be reached, downloads a state when it
// is out of sync and serves its own. It translates messages; plain state machines decide
// (shard_client, progress_publisher, reach_agent, state_catch_up, round_tracker, held_samples,
// state_shelf).
//
// A method (peer.hpp, moshpit_peer.hpp, ...) is a class derived from this one. It decides when to
// compute, when to average with whom, what to contribute, and what to do with the result. The
// virtual functions below are all that it is asked; the other functions are what it uses:
//   compute(work, samples, then)      has the device compute; `then` is called in the actor when
//   that is over start_group(request, how)         looks for a group and averages `request.values`,
//   which may be a part of the parameters; the least
//                                     number of members is in `how`, the time that a leader waits
//                                     for latecomers in `request.patience`
//   set_state(state)                  takes a step of its own; keep_served(before, step) serves the
//   former state to those who download start_download()                  goes to the leading
//   branch; fetch_step() downloads one step meanwhile
// A method with a state of its own beside the optimizer's keeps it in model_state::method_state:
// that travels with downloads.
#pragma once

#include "actors/averaging/round.hpp"
#include "actors/protocol_actor.hpp"
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

/// What holds of a method as a whole.
struct method_traits {
  bool streams_samples = true; ///< false: a peer of this method computes nothing
  bool serves_state = true;    ///< it has a state that others may download
  bool one_branch =
      true; ///< peers on one branch hold the same bits; false: each has parameters of its own
  bool repeats_steps =
      false; ///< a step is the same for all who take it: a peer that has missed one can repeat it
  bool overlaps_rounds = false;         ///< rounds go on beside computing
  bool steps_locally = false;           ///< a sample changes the peer's own parameters at once
  std::uint64_t method_state_bytes = 0; ///< of model_state::method_state, where a state has one
};

class training_peer : public protocol_actor {
public:
  /// tick{drain} tells a peer to leave: it ends the round it is in, hands back its samples, takes
  /// its record back and computes no more. It goes on serving its state.
  static constexpr std::uint32_t drain = 100;

  ~training_peer() override;
  caf::behavior make_behavior() final;
  void on_exit() override;

protected:
  /// `dht` is the DHT node of this host.
  training_peer(caf::actor_config& config, host& on, peer_config options, method_traits traits,
                std::shared_ptr<state_pool> pool, caf::actor dht);

  enum class mode { joining, computing, averaging, stepping, downloading, stopped };

  // -- What a method decides
  // ------------------------------------------------------------------------

  /// Decides what to do next; called whenever records, samples, a job or a timer may have changed
  /// the answer.
  virtual void decide() = 0;
  /// Decides what becomes of the round of start_group(), which has ended well or not.
  virtual void round_ended(const round_result& result) = 0;
  /// Throws away what was computed and not averaged; the caller gives the samples back.
  virtual void discard_work() = 0;
  /// Samples until the next round is due, less what the others are expected to have computed by
  /// now.
  virtual double missing_samples() const = 0;
  /// The branch that the peer should be on: where the best of the peers are.
  virtual branch leading() const = 0;
  /// The branch that the peer's record names, and whose next round it works for.
  virtual branch position() const { return own_branch(); }
  /// Adds to the peer's record what this method's peers tell each other besides; not called while
  /// it joins or downloads.
  virtual void describe(progress&) const {}
  /// The state that others may download, and that is written as a checkpoint.
  virtual state_ptr shared_state() const { return state(); }
  /// Whether a downloaded state is worth more than the peer's own.
  virtual bool prefers(const model_state& offered) const {
    return branch{offered.epoch, offered.samples, offered.id}.leads(own_branch());
  }
  /// state() has become a downloaded one, or one that a repeated step led to; forgets what belonged
  /// to the former.
  virtual void state_adopted() {}
  /// Whether the peer may leave now: no round, and nothing made of one, is under way.
  virtual bool may_leave() const { return !has_group(); }

  // -- What a method uses
  // ---------------------------------------------------------------------------

  const state_ptr& state() const;
  /// A step of the method's own has led here.
  void set_state(state_ptr next);
  const std::shared_ptr<state_pool>& pool() const;
  const progress_table& others() const;
  held_samples& held();
  const held_samples& held() const;
  mode current_mode() const noexcept { return mode_; }
  bool heard() const noexcept { return heard_; }
  bool draining() const noexcept { return draining_; }
  branch own_branch() const { return {state()->epoch, state()->samples, state()->id}; }
  rng& backoff() noexcept { return backoff_; }

  void enter(mode next);
  /// The same without an observation: the peer is in sync with nothing.
  void enter_silently(mode next) { mode_ = next; }
  void try_again_in(duration pause) { set_timer(pause, retry_timer); }
  void leave();

  // Records.
  /// Publishes the peer's record if it says something new.
  void publish();
  /// Publishes out of turn, and reads the others' records.
  void announce();
  void look_up_progress();
  /// Samples towards the next step, those of the running job included: they are as good as here.
  std::uint64_t promised() const { return held().promised(); }

  // Data and computing.
  bool has_shard() const;
  void request_samples();
  /// Takes ready samples, at most `most`. Requires: some are ready.
  sample_job take_samples(std::uint64_t most);
  /// `work` runs on a compute thread and may not touch the actor. `is_step`: it takes an optimizer
  /// step, too.
  void compute(std::function<void()> work, std::uint64_t samples, std::function<void()> then,
               bool is_step = false);
  /// The job that has just ended; none if the peer has left its state: then its samples are given
  /// back.
  std::optional<sample_job> finished_job();
  void measure_speed(const sample_job& job);
  double speed() const { return speed_.value(); }
  /// Samples a second of all who make up the next round.
  double swarm_speed() const;
  /// Discards the work under way, and gives its samples back.
  void give_back_work();
  /// Gives the samples of the contribution under way back, without the rest.
  void give_back_contribution();

  // Averaging.
  reached_by reached() const;
  /// The peer knows how it is reached, or nothing is gained by waiting until it does, or there is
  /// nobody who could tell.
  bool may_lead() const;
  bool has_group() const;
  /// Completes the request with what every request has: who the peer is, and the samples that are
  /// in the round.
  void start_group(round_request request, averaging_config how);
  /// Tells the group who is expected now.
  void tell_group(std::vector<expected_peer> expected, std::uint64_t known_samples);
  void cancel_group();
  void send_commit(const round_result& result);
  /// A step of the peer's own has led here; `round` is what it averaged.
  void note_round(const round_result& round);
  void checkpoint_if_due();

  // States.
  /// The former state goes to those who download. `step`: the step that was taken from it, if
  /// others can repeat it.
  void keep_served(const state_ptr& former, std::optional<taken_step> step = {});
  std::vector<peer_id> donors() const;
  void start_download();
  /// Downloads the step that leads on from state() while the peer goes on computing; `then` gets
  /// it, or nothing if that failed. `then` is not called if nobody has the step.
  void fetch_step(std::function<void(std::optional<taken_step>)> then);
  bool fetches_step() const;
  /// Whether that can be the step from state(); counts a donor that sent another one.
  bool follows_state(const taken_step& step);

  const peer_config options_;

private:
  enum timer : std::uint32_t {
    refresh_timer,
    retry_timer,
    data_timer,
    look_timer,
    look_again_timer,
    shard_timer
  };
  enum token : std::uint64_t { progress_token, shard_token };
  struct parts;
  class shard_effects;

  void on_tick(const tick& message);
  void on_down(const caf::actor_addr& whom) override;
  void on_found(const found& answer);
  void on_work_done(const work_done& message);

  progress own_record() const;
  duration next_refresh() const;
  void refresh();
  void refresh_in(duration wait);
  void withdraw_record();

  void on_samples(const samples& message);
  void on_lease_lost(const lease_lost& message);

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
  /// state() becomes one that was downloaded, or that a repeated step led to.
  void adopt(state_ptr next, std::uint64_t bytes, bool whole, bool of_step);

  void on_state_request(const state_request& message);
  void on_state_hold(const state_hold& message);
  void on_chunk_request(const state_chunk_request& message);

  const method_traits traits_;
  std::unique_ptr<parts> parts_; // all that holds addresses and states; on_exit() drops it
  rng backoff_;
  mode mode_ = mode::joining;
  duration entered_{}; // the mode that the peer is in
  bool heard_ = false; // records were read at least once
  bool draining_ = false;
  ema speed_;
  std::uint64_t last_job_ = 0;
  std::uint64_t data_from_ = 0;         // all indices in rounds that the peer saw are below it
  std::uint64_t state_bytes_asked_ = 0; // since the last offer
};

} // namespace shoal::actors
