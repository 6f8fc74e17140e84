// A trainer of a pipeline. It draws its part of each batch, and sends that as micro-batches through
// the stages. It closes the batch when each gradient has counted in each stage. It keeps the batch
// until each stage has made its step. If a peer dies before that with gradients that have counted,
// the trainer opens the batch again.
//
// The trainer streams its samples from the data shard. Its part of a batch is the one of equal
// parts that the trainers with a record share. When the model has made the step, the trainer
// commits the samples of its part. A sample that has counted in some stages only is committed as
// partial. A study without a shard gives `samples` instead. The batch of epoch e then begins at
// index e * batch, and trainer i of n takes the i-th of n equal parts. At most `in_flight` micro-
// batches are under way, because the trainer holds their activations. Each hop is sent to the peer
// that the stage's wiring chooses (stage_wiring.hpp). Another peer of the stage replaces one that
// is gone, refuses or is silent. The gradients that have counted at a peer that is gone are
// computed again (micro_batch.hpp).
//
//   none -> open -> closed -> none, when all stages have stepped
//            ^         |
//            +---------+ a peer has died before its stage has stepped
//
// With `audit_share`, a drawn share of the outputs is computed again by another peer of the stage
// that has the same parameters (stage_audit.hpp). The trainer never again uses a peer whose output
// two others contradict. The earlier values of that peer stay in the batch.
//
// A batch begins when each stage has a peer of its epoch. If a stage goes on before the trainer has
// closed the batch, the trainer drops the rest of its part.
// Source: Ryabinin et al., "SWARM Parallelism", arXiv:2301.11913, section 3.1.
#pragma once

#include "actors/dht/messages.hpp"
#include "actors/pipeline/batch_part.hpp"
#include "actors/pipeline/known_stages.hpp"
#include "actors/pipeline/messages.hpp"
#include "actors/pipeline/micro_batch.hpp"
#include "actors/pipeline/observations.hpp"
#include "actors/pipeline/pipeline_record.hpp"
#include "actors/pipeline/sent_tasks.hpp"
#include "actors/pipeline/stage_audit.hpp"
#include "actors/pipeline/stage_model.hpp"
#include "actors/pipeline/stage_wiring.hpp"
#include "actors/protocol_actor.hpp"
#include "actors/training/shard_io.hpp"
#include "actors/training/workload.hpp"
#include "kernels/base/rng.hpp"
#include "kernels/compress/codec.hpp"

#include <caf/actor_addr.hpp>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace shoal::actors {

struct pipeline_trainer_config {
  std::string run; ///< names the pipeline in the DHT
  std::shared_ptr<const stage_model> model;
  std::uint32_t time = 0; ///< tokens of a sample between layers
  std::uint64_t target_batch = 64, micro_batch = 4;
  std::uint64_t epochs = 0; ///< the trainer sends nothing after this epoch; 0: never
  std::size_t in_flight = 8;
  kernels::codec activations = kernels::codec::none;
  /// The bytes of the samples [first, first + count), in place of a data shard.
  std::function<payload(std::uint64_t first, std::uint64_t count)> samples;
  std::uint32_t trainer = 0, trainers = 1; ///< with `samples`: the trainer's part of a batch
  shard_client_config shard;               ///< without `samples`
  /// True: the trainer downloads the states of all stages at this epoch. May be empty: never.
  std::function<bool(std::uint64_t epoch)> wants_states;
  /// Called with these states, in order.
  std::function<void(const std::vector<state_ptr>&)> on_states;
  std::vector<state_ptr> initial; ///< with `wants_states`: the states of the stages at epoch 0
  double audit_share = 0;         ///< share of the outputs that are audited, [0, 1]
  duration refresh = std::chrono::milliseconds(500);
  duration record_lifetime = std::chrono::seconds(10);
  /// As in sent_tasks: a peer that has not answered by then is silent, unless its stage is slow.
  duration forward_timeout = std::chrono::seconds(30), backward_timeout = std::chrono::seconds(75);
  duration ban = std::chrono::seconds(5); ///< a silent peer gets no task, and for twice as long the
                                          ///< next time; one that refused, not until `refresh` is
                                          ///< over
  caf::actor dht;
};

class pipeline_trainer final : public protocol_actor {
public:
  /// tick{drain} tells the trainer to leave. It gives its samples back and sends nothing any more.
  static constexpr std::uint32_t drain = 100;

  ~pipeline_trainer() override;
  pipeline_trainer(caf::actor_config& config, host& on, pipeline_trainer_config options);
  caf::behavior make_behavior() override;
  void on_exit() override;

private:
  enum timer : std::uint32_t { refresh_timer, task_timer, shard_timer, audit_timer };
  template <class Peer>
  friend class shard_io;
  /// An output that other peers compute again, by the number that they see.
  struct running_audit {
    stage_audit of;
    stage_task task;
    std::uint64_t number = 0;    // the micro-batch's
    state_id state;              // the parameters
    peer_id asked = 0;           // computes the task now
    std::set<peer_id> without{}; // cannot, or have an opinion
  };

  void refresh();
  void publish();
  trainer_record record();
  void receive(const found& m);
  void receive(const stage_output& m);
  void receive(const stage_refused& m);
  void receive(const stage_counted& m);
  template <class Samples>
  void receive_samples(const Samples& m);
  void receive(const lease_lost& m);
  void read_trainers(const found& m);
  void on_down(const caf::actor_addr& whom) override;

  void decide();
  void begin_batch(std::uint64_t epoch);
  void close_batch();
  /// No stages: all of them.
  void tell_stages(const std::set<std::uint32_t>& stages);
  void report(bool dropped);
  void end_batch();
  void hand_in(const group_id& step);
  void note_step(state_id& after);
  void leave();
  void gather(std::uint64_t epoch);
  void ask_for_state(std::uint32_t stage);
  void receive(const stage_state& m);
  struct taken {
    payload bytes;
    std::vector<sample_range> ranges;
  };
  std::optional<taken> take(std::uint64_t count);
  void trained(const micro_batch& pass);
  void settle(std::uint32_t stage);
  void pump();
  void start_more();
  void go_on(std::map<std::uint64_t, micro_batch>::iterator pass);
  void close_if_done();
  void dispatch(micro_batch& pass, micro_batch::task what);
  std::set<peer_id> banned();
  void note_failure(std::uint64_t number, micro_batch::task what, task_failure why);
  void fail(std::uint64_t number, micro_batch::task what, peer_id by, task_failure why);
  void lose(peer_id peer, std::uint32_t stage);
  /// Bans a peer that has let a task fail, for longer with each further time.
  void leave_alone(peer_id peer);
  void ban(peer_id peer, duration time);
  /// True if the values are an output of the task, and finite.
  bool has_activations(const micro_batch& pass, micro_batch::task what,
                       const payload& values) const;
  stage_task task_of(const micro_batch& pass, micro_batch::task what);
  void draw_audit(const micro_batch& pass, micro_batch::task what, peer_id by,
                  const stage_output& m);
  stage_audit::opinion opinion_of(peer_id by, const stage_task& task, const stage_output& m) const;
  void ask_auditor(std::map<std::uint64_t, running_audit>::iterator audit);
  void audit_answered(const stage_output& m);
  void end_audit(std::map<std::uint64_t, running_audit>::iterator audit, audit_end how);
  void convict(const running_audit& audit);
  void task_ended(std::map<std::uint64_t, micro_batch>::iterator pass);

  pipeline_trainer_config options_;
  std::uint64_t epoch_ = 0, closed_ = 0;
  std::uint64_t model_epoch_ = 0;  // the last one that an observer has heard of
  std::uint64_t told_samples_ = 0; // the size of the last part that was closed
  trainer_record told_;            // the last one
  // Stages that have lost gradients of the batch since it was closed.
  std::set<std::uint32_t> reopened_;
  bool joined_ = false, draining_ = false;
  std::unique_ptr<sample_stream<pipeline_trainer>> stream_; // null with options_.samples
  /// A download of all stages' states.
  struct gathering {
    std::uint64_t epoch = 0;
    std::vector<state_ptr> states;
    std::vector<caf::actor> donors;
    std::vector<id128> content; // stage_content() in the donors' records
    std::set<peer_id> without;  // have given no such state
  };
  std::optional<gathering> gathering_;
  enum class progress : std::uint8_t { none, open, closed };
  progress at_ = progress::none;
  bool reported_ = false; // the batch was closed once
  batch_part part_;
  std::uint64_t numbers_ = 0;
  std::map<std::uint64_t, micro_batch> passes_;
  std::set<std::uint64_t> open_;  // the micro-batches that are not done
  bool waits_ = false;            // a task found no peer
  std::vector<peer_id> trainers_; // with a record, ascending
  std::uint64_t repeated_ = 0;
  known_stages stages_;
  std::map<peer_id, duration> bans_;     // until then
  std::map<peer_id, unsigned> silences_; // less one for each batch since
  std::map<std::uint64_t, running_audit> audits_;
  std::vector<stage_wiring> wiring_;
  sent_tasks sent_;
  rng audit_draws_, donor_draws_;
};

} // namespace shoal::actors
