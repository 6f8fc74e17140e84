// A peer of a pipeline stage. It computes hops of micro-batches for trainers, forward and backward,
// and adds up the gradients that its trainers say count. When all trainers have closed the batch,
// the peers of the stage average their gradients in a group and step together.
//
//   [choosing ->] joining -> serving -> averaging -> stepping -> serving ...
//      ^          |           |
//      +----------+-----------+---- the stage went on without the peer: download its state
//
// If the last peer of a stage dies, its state is lost. A newcomer that finds no peer for two
// lifetimes of a record begins with the first state, at the epoch of the other stages.
//
// So the parameters of a batch are those of one epoch in every stage, and a step is the whole
// model's. A mean that lacks samples makes no step. Then the trainers compute the gradients of dead
// peers again. After `batch_timeout` without a whole batch, the peers take all gradients that are
// known, and after twice that time those of any half. The peers wait as long for a trainer that
// closes no batch (known_trainers.hpp). Where such waits are in vain they get shorter.
//
// A record is a claim. A peer follows the members of its stage only to a state that most of them
// announce (stage_votes.hpp). It takes no other bytes than those.
//
// With `rebalance_every`, the peers that write a stage's summary read the loads of all stages that
// often. They tell the peer that rebalancing.hpp names, and that peer reads the loads itself. The
// peer moves after its next step, when it holds no gradient, if that helps. It
// downloads the state of its new stage. Before, it announces the move in its record. It stays if
// its stage would be empty without it and the others that have announced a move.
//
// Source: Ryabinin et al., "SWARM Parallelism", arXiv:2301.11913, section 3.
#pragma once

#include "actors/averaging/failing_members.hpp"
#include "actors/averaging/round.hpp"
#include "actors/dht/messages.hpp"
#include "actors/pipeline/gradient_book.hpp"
#include "actors/pipeline/known_trainers.hpp"
#include "actors/pipeline/messages.hpp"
#include "actors/pipeline/patience.hpp"
#include "actors/pipeline/pipeline_record.hpp"
#include "actors/pipeline/rebalancing.hpp"
#include "actors/pipeline/stage_model.hpp"
#include "actors/pipeline/stage_votes.hpp"
#include "actors/protocol_actor.hpp"
#include "actors/queue_shares.hpp"
#include "actors/training/observations.hpp"
#include "actors/training/workload.hpp"
#include "kernels/compress/codec.hpp"
#include "kernels/optimizer.hpp"

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace shoal::actors {

/// The peers of a stage that write its summary.
inline constexpr std::uint64_t summary_writers = 2;

/// How much longer a backward pass takes than a forward pass: it computes the forward pass again.
inline constexpr double backward_size = 3;

struct stage_peer_config {
  std::string run; ///< names the pipeline in the DHT
  /// Empty: the peer joins the stage with the most load, or `first_stage` while no load is known.
  std::optional<std::uint32_t> stage = 0;
  std::uint32_t first_stage = 0;
  std::shared_ptr<const stage_model> model;
  kernels::optimizer_config optimizer;
  std::vector<state_ptr> initial; ///< the state of each stage at epoch 0
  averaging_config averaging;
  /// The codecs of each stage's gradients. Empty: gradients travel as floats.
  std::vector<round_codecs> codecs;
  std::uint64_t target_batch = 64; ///< samples of a step
  /// A whole batch is what the trainers' records say, in place of `target_batch`.
  bool trusts_trainers = false;
  duration sample_time = std::chrono::milliseconds(10); ///< one sample, one hop, forward
  double jitter = 0; ///< relative standard deviation of computing times
  duration step_time = std::chrono::milliseconds(20);
  duration refresh = std::chrono::milliseconds(500);
  duration record_lifetime = std::chrono::seconds(10);
  duration state_timeout = std::chrono::seconds(60);
  duration rebalance_every{}; ///< 0: never
  duration batch_timeout = std::chrono::seconds(60);
  std::size_t most_waiting = 256; ///< tasks, a quarter of them from one trainer
  std::size_t most_waiting_bytes = std::size_t{1} << 30;
  /// Called after each step of this peer, with the stage and its new state. May be empty.
  std::function<void(std::uint32_t, const state_ptr&)> on_step;
  caf::actor dht;
};

/// The state of a stage at which training starts. `whole` has the parameters of the model.
result<state_ptr> initial_stage_state(const stage_model& model, std::uint32_t stage,
                                      const kernels::optimizer_config& optimizer,
                                      const std::vector<kernels::tensor_slot>& layout,
                                      std::span<const float> whole, std::uint64_t seed);

/// The same for a model of sizes alone; the optimizer has two values for each parameter.
state_ptr sized_stage_state(const stage_model& model, std::uint32_t stage, std::uint64_t seed);

/// The state in the message. Null if it is none of the stage whose first state is `like`.
state_ptr state_of(const stage_state& m, const model_state& like);

/// A hash of the values of a state and of its step: two states with one hash go on alike.
id128 stage_content(const model_state& state);

class stage_peer final : public protocol_actor {
public:
  /// tick{drain} tells the peer to end its round and to begin no other one.
  static constexpr std::uint32_t drain = 100;

  stage_peer(caf::actor_config& config, host& on, stage_peer_config options);
  caf::behavior make_behavior() override;
  void on_exit() override;

protected:
  void on_down(const caf::actor_addr& whom) override;

private:
  enum timer : std::uint32_t {
    refresh_timer,
    retry_timer,
    state_timer,
    rebalance_timer,
    trainers_timer
  };
  enum class mode : std::uint8_t { choosing, joining, serving, averaging, stepping };
  struct job {
    stage_task what;
    member_id whose;
    // Written by the compute thread.
    std::vector<float> values, gradient;
    double loss = 0;
    bool failed = false;
    duration time{};
  };
  struct known_peer {
    stage_record record;
    caf::actor address;
    member_id member;
    std::int64_t expires = 0;
  };

  void tell(peer_phase phase);
  void tell_load();
  void receive(const stage_task& m);
  void receive(const stage_count& m);
  void receive(const trainer_progress& m);
  void receive(const stage_state_request& m);
  void receive(const stage_state& m);
  void receive(const found& m);
  void receive(const stage_move_hint& m);
  void forget_donor();
  /// The donor has sent no state.
  void donor_failed();
  /// The peers with the leading state of the stage; with a state, only if that is beyond it.
  std::vector<const known_peer*> furthest(const state_ptr& than) const;
  std::optional<announced_state> leading(const state_ptr& own) const;
  /// The latest epoch that a record of the stage may have.
  std::uint64_t most_epoch() const;
  bool seems_ahead() const;
  void refuse(const stage_task& m, task_refusal why);
  void start_job();
  void computed();
  void decide();
  void join();
  void adopt(state_ptr state, std::uint64_t bytes);
  bool batch_is_closed();
  duration batch_patience() const { return patience_.wait(options_.batch_timeout); }
  std::uint64_t whole_batch() const;
  /// The other peers at this peer's state, and their samples times hops as their records say.
  struct state_peers {
    std::vector<expected_peer> all;
    std::uint64_t trusted = 0, suspected = 0; ///< suspected: of members that let rounds fail
  };
  state_peers peers_at_state() const;
  void start_round();
  void round_ended(const round_result& result);
  /// Steps with a mean that lacked samples if another peer has done so. True if there is one.
  bool steps_with_others();
  state_id state_by(const round_result& result) const;
  void step(const round_result& result);
  void stepped();
  void drop_gradients(const model_state& of);
  void refresh();
  void publish();
  void read_stages();
  void receive_summaries(const found& m);
  void read_own_stage();
  void read_trainers();
  bool waits() const;
  duration pace() const;
  bool writes_summary() const;
  std::uint64_t busy() const;
  void choose_stage();
  std::optional<std::uint64_t> epoch_elsewhere() const;
  void take_stage(std::uint32_t stage);
  std::optional<stage_move> due_transfer() const;
  void look_at_loads();
  void consider_move();
  void move_if_due();

  stage_peer_config options_;
  std::uint32_t stage_;
  mode mode_ = mode::joining;
  state_ptr state_; // null while joining
  id128 content_;   // stage_content() of the state
  // The state before the peer began to join because of another peer's record. A record is a claim,
  // so the peer returns to this state if nobody gives a later one.
  state_ptr former_;
  struct failed_donor {
    unsigned count = 0;
    duration until{};
  };
  std::map<peer_id, failed_donor> failed_donors_; // a failed donor is left alone for a while
  std::map<peer_id, std::int64_t> gone_;          // dead donors, and the ends of their records
  gradient_book book_;
  std::deque<job> waiting_;
  queue_shares shares_; // the places in waiting_ by member
  std::shared_ptr<job> running_;
  std::map<peer_id, known_peer> others_; // the others of the stage
  known_trainers trainers_;
  patience patience_;        // with batches that seem not to be whole
  std::uint32_t looked_ = 0; // answers about the own stage since the peer has begun to join
  caf::actor group_, donor_;
  std::set<announced_state> promised_; // the stage's leading states since the donor was asked
  std::uint64_t state_asks_ = 0;
  struct next_state {
    state_ptr state;
    id128 content;
  };
  std::shared_ptr<next_state> next_state_; // written by the step job
  state_id after_;
  std::uint64_t attempts_ = 0;
  duration tries_since_{}; // the first attempt of the step
  failing_members failing_;
  std::vector<round_result> declined_; // means that lacked samples, oldest first
  group_id step_group_;
  std::uint64_t step_members_ = 0, own_ = 0, counted_ = 0;
  std::uint64_t needed_ = 0; // samples times hops of a mean that makes a step at once
  // An exponential mean, once it is divided by its weight, which tends to 1.
  double busy_ = 0, busy_weight_ = 0;
  duration computed_time_{}; // since the last refresh
  duration refreshed_{};     // the time of that
  duration untold_work_{};   // computed since the last observation of the load
  duration told_load_{};     // the time of that
  // By stage, from the last look at the summaries. Empty before the first one.
  std::vector<stage_total> totals_;
  std::optional<std::uint32_t> moves_to_;
  duration announced_{};
  rng random_, jitter_;
  bool draining_ = false;
  std::vector<std::uint64_t> epochs_; // the stages' epochs in their last summaries
  duration alone_since_{};            // no other peer of the stage was seen since then
  std::uint64_t refreshes_ = 0;       // names the timer of the next one
  std::uint64_t least_epoch_ = 0;     // the epoch that the peer had in the stage it has left
  // Before a round the peer waits for these records, and before a move for those of its stage.
  bool reads_own_ = false, reads_trainers_ = false, may_move_ = false;
  bool has_looked_ = false; // at its stage, since it serves there
  bool rebalances_ = false; // the time of a move has come, and the summaries are being read
  duration read_{};         // the last look at the own stage, or at the summaries in its place
  duration stages_read_{};  // the last look at the summaries
  std::optional<duration> hinted_; // the last hint that the peer has followed
  std::uint32_t choices_ = 0;      // looks at the loads before the peer has chosen a stage
};

} // namespace shoal::actors
