// An asynchronous trainer: it holds the trunk of a network, which is the ends and the gates, and
// calls the experts of other hosts. It waits for no other trainer.
//
// Steps of a training step:
// 1. For each layer: search the experts of each row (expert_search.hpp), send each expert its rows,
//    and wait until all have answered. An expert whose answer takes far longer than earlier ones
//    is left out (actors/averaging/answer_times.hpp). Its host gets no calls until it answers, and
//    counts as failed after `timeout`. A row without any answer is searched again, up to `retries`
//    times, among the hosts that have not failed.
// 2. The loss; then back through the layers. Each expert that answered gets the gradient of its
//    output and makes a step of its own. A request without an answer in time is sent once more
//    under the same number, which makes no second step.
//    An answer that is far larger than those of other hosts counts as none, and its host is left
//    alone for long (size_bound.hpp).
// 3. A step of the trunk. Every `share_every` the trunk goes to another trainer, drawn at random,
//    and each trainer takes the mean of its own trunk and those that came. With `rounds` the
//    trainers average their trunks in groups instead (trunk_rounds.hpp).
//
// A training run has a data shard: the trainer streams its samples, and commits those of a step
// when the step is made. Each expert that was called on the way back is a part of the commit, and
// the trunk is one. Then epochs count the samples of all trainers (trainer_record.hpp). At some
// epochs one trainer puts the whole model together (expert_gatherer.hpp). A study gives `samples`
// instead. Source: Ryabinin and Gusev, arXiv:2002.04013, section 3.
#pragma once

#include "actors/averaging/answer_times.hpp"
#include "actors/experts/expert_gatherer.hpp"
#include "actors/experts/expert_record.hpp"
#include "actors/experts/expert_search.hpp"
#include "actors/experts/messages.hpp"
#include "actors/experts/observations.hpp"
#include "actors/experts/size_bound.hpp"
#include "actors/experts/trainer_record.hpp"
#include "actors/experts/trunk_rounds.hpp"
#include "actors/protocol_actor.hpp"
#include "actors/training/shard_io.hpp"
#include "kernels/learn/mixture_network.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace shoal::actors {

struct expert_trainer_config {
  std::string model;
  std::shared_ptr<const learn::mixture_network> net;
  std::uint64_t seed = 1; ///< seeds the trunk's initial parameters
  expert_optimizer optimizer;
  /// The samples of step `step`, in place of a data shard.
  std::function<std::vector<std::byte>(std::uint64_t step)> samples;
  std::uint64_t steps = 0; ///< the trainer ends after so many; 0: never
  expert_search_limits search;
  duration step_time = std::chrono::milliseconds(10); ///< to compute the trunk, each step
  duration timeout = std::chrono::seconds(5);
  unsigned retries = 2;
  /// If no row of a layer gets an answer, the step searches again after this time, so often at
  /// most. Otherwise steps without experts would be the fastest.
  duration pause = std::chrono::seconds(1);
  unsigned pauses = 60;
  expert_cache_options cache;
  std::vector<std::byte> held_out;
  std::uint64_t evaluate_every = 0; ///< steps; 0: never
  duration share_every{};           ///< 0: never
  /// Trunks are averaged in groups, and not one to one; with a data shard only.
  std::optional<trunk_rounds_config> rounds;
  duration renew = std::chrono::seconds(20);
  duration record_lifetime = std::chrono::minutes(1);
  std::size_t sized = 0;   ///< as in expert_server_config
  double most_growth = 32; ///< an answer may be so many times as large as those of most hosts

  // Without `samples`.
  shard_client_config shard;
  std::uint64_t batch = 8;           ///< samples of a step
  std::uint64_t epoch_of = 256;      ///< samples of all trainers in an epoch
  std::uint64_t epochs = 0;          ///< the trainer makes no step after this epoch; 0: never
  std::optional<expert_state> trunk; ///< the trunk with which the trainer begins
  duration trunk_time{};             ///< to compute the trunk of a step, forward and back
  double jitter = 0;                 ///< that time varies, as device_profile::jitter
  duration refresh = std::chrono::milliseconds(500); ///< between two looks at the others
  /// The trainer has gone from one epoch to another. If one of these is in the result, the trainer
  /// puts the whole model together as that epoch's. May be empty: never.
  std::function<std::optional<std::uint64_t>(std::uint64_t before, std::uint64_t after)>
      wants_model;
  /// Called with the trainer's trunk at that epoch, and all experts. `samples`: of the swarm.
  std::function<void(std::uint64_t epoch, std::uint64_t samples, const expert_state& trunk,
                     const expert_states& experts)>
      on_model;
  std::vector<expert_id> experts; ///< with `wants_model`: all of them, in order
  expert_states initial;          ///< the same: the states with which they begin
  std::size_t expert_size = 0;    ///< the same: the parameters of an expert
  caf::actor dht;
};

class expert_trainer final : public protocol_actor {
public:
  /// tick{drain} tells the trainer to leave. It gives its samples back and makes no step any more.
  static constexpr std::uint32_t drain = 100;

  ~expert_trainer() override;
  expert_trainer(caf::actor_config& config, host& on, expert_trainer_config options);
  caf::behavior make_behavior() override;
  void on_exit() override;

private:
  enum timer : std::uint32_t {
    begin,
    late,
    silent,
    renewal,
    sharing,
    pausing,
    refreshing,
    shard_timer,
    trunk_timer
  };
  template <class Peer>
  friend class shard_io;
  struct row_search {
    std::size_t row = 0;
    expert_search by;
  };
  struct call {
    expert_place place;
    std::vector<learn::routed_row> rows;
    expert_holder to;
    bool again = false; // the request was repeated
    duration began{};
    bool sent = false;
  };
  /// A call that was left out, and whose answer may still come.
  struct late_call {
    peer_id to = 0;
    bool backward = false;
    duration began{};
  };
  struct answered_expert {
    expert_holder holder;
    std::uint64_t version = 0;
  };

  void start_step();
  bool take_samples(std::vector<std::byte>& into);
  /// Computes a part of the trunk for so long, then goes on.
  void compute_trunk(double share, std::function<void()> work, void (expert_trainer::*then)());
  void start_pass(std::vector<std::byte> samples, bool evaluates);
  void search_all_rows();
  void search_layer(const std::vector<std::size_t>& rows);
  void go_on_searching();
  void call_experts();
  /// Splits the rows into requests of a size that servers take.
  void place_calls(const expert_place& place, std::span<const learn::routed_row> rows,
                   const expert_holder& to);
  void place_call(const expert_place& place, std::vector<learn::routed_row> rows,
                  const expert_holder& to, std::uint64_t request, bool again, duration began);
  void receive(const expert_answer& m);
  void receive(const found& m);
  void receive(const trunk_share& m);
  /// The answer has not come in time.
  void be_late(std::uint64_t request);
  /// The host of a late call has answered after all.
  void end_lateness(std::uint64_t request);
  /// The host of a late call is silent for good.
  void end_silence(std::uint64_t request);
  void lose(std::uint64_t request, expert_refusal why);
  /// The step goes on without this expert.
  void leave_out(std::uint64_t request, expert_refusal why);
  void all_answered();
  void layer_answered();
  void enter_first_layer();
  void enter_layer();
  void turn_back();
  void go_back();
  void call_back();
  void finish_step();

  // A run with a data shard: expert_trainer_run.cpp.
  void begin_run();
  void refresh();
  void publish();
  void look_for_shard();
  void found_shard(const found& m);
  void receive(const commit_received& m);
  void receive(const not_primary& m);
  void read_trainers(const found& m);
  template <class Samples>
  void receive_samples(const Samples& m);
  void receive(const lease_lost& m);
  void commit_step();
  void reach_epoch();
  void gather(std::uint64_t epoch);
  void leave();
  void go_away();
  void run_lost(const caf::actor_addr& whom);
  /// A trainer that begins late takes the trunk of another one.
  void ask_for_trunk();
  void adopt(const std::vector<float>& trunk);
  void join_run();
  bool is_in_run() const noexcept { return stream_ && joined_ && !adopts_trunk_; }
  bool is_at_end() const noexcept { return options_.epochs > 0 && epoch_ >= options_.epochs; }
  void note_end();
  state_id state_here() const;
  group_id step_here() const;

  void share(const found& m);
  void start_round();
  void round_ended(const round_result& result);
  void watch(const expert_holder& holder);
  void on_down(const caf::actor_addr& whom) override;
  expert_id in_layer(const expert_place& place) const;

  using host_times = answer_times<peer_id, adaptive_deadline>;

  expert_trainer_config options_;
  std::shared_ptr<const std::vector<float>> trunk_;
  std::vector<float> optimizer_state_;
  std::uint64_t steps_ = 0;
  expert_cache cache_;
  std::map<caf::actor_addr, peer_id> watched_;
  std::array<size_bound, 2> sizes_;        // the answers' sizes, forward and back
  std::array<host_times, 2> answer_times_; // the same

  // The pass that is under way.
  std::shared_ptr<const std::vector<float>> used_; // the trunk with which the pass began
  std::shared_ptr<learn::mixture_pass> pass_;
  std::shared_ptr<std::shared_ptr<learn::mixture_pass>> begun_; // the result of a job under way
  std::shared_ptr<double> left_;                                // the same: the loss
  bool evaluates_ = false, backward_ = false;
  std::vector<row_search> searches_;
  std::set<expert_id> reading_; // prefixes whose dictionaries are being read
  std::vector<std::vector<learn::expert_choice>> chosen_;
  std::vector<std::map<expert_place, answered_expert>> answered_; // by layer
  std::map<std::uint64_t, call> calls_;
  std::map<std::uint64_t, late_call> late_;
  std::map<std::uint64_t, expert_id> look_ups_;
  unsigned retried_ = 0, paused_ = 0;
  expert_step seen_;
  double loss_ = 0;
  duration began_{}, look_up_began_{}, calls_began_{};

  std::vector<float> shared_sum_; // trunks of others since the last step
  std::size_t shared_ = 0;
  std::set<peer_id> shared_by_; // hosts whose trunk is in the sum: each has one
  std::uint64_t share_token_ = 0, last_token_ = 0;
  std::optional<trunk_rounds> rounds_;
  caf::actor group_; // while a round is under way
  rng draws_;

  // A run with a data shard.
  std::unique_ptr<sample_stream<expert_trainer>> stream_; // null with options_.samples
  static constexpr std::uint64_t shard_token = ~std::uint64_t{0};
  void (expert_trainer::*then_)() = nullptr; // after the trunk is computed
  swarm_samples learnt_;
  std::uint64_t own_ = 0, epoch_ = 0;
  std::uint64_t trainers_token_ = 0;
  std::uint32_t parts_ = 0, parts_done_ = 0; // the samples of the step under way
  std::vector<sample_range> ranges_;         // the same
  state_id state_;                           // the trunk's, as observers know it
  bool joined_ = false, waiting_ = false, draining_ = false, done_ = false, adopts_trunk_ = false;
  std::vector<caf::actor> others_; // the other trainers that have a record
  std::size_t asked_other_ = 0;
  peer_id asked_for_trunk_ = 0;
  /// Gatherers that are at work, and where each one leaves its result.
  std::map<caf::actor_addr, std::shared_ptr<expert_states>> gathers_;
  rng jitter_;
};

} // namespace shoal::actors
