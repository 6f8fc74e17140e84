// An asynchronous trainer: it holds the trunk of a network, which is the ends and the gates, and
// calls the experts of other hosts. It waits for no other trainer.
//
// Steps of a training step:
// 1. For each layer: search the experts of each row (expert_search.hpp), send each expert its rows,
//    and wait until all have answered, or for `timeout`. A row without any answer is searched
//    again, up to `retries` times, among the hosts that have not failed.
// 2. The loss; then back through the layers. Each expert that answered gets the gradient of its
//    output and makes a step of its own. A request without an answer is sent once more under the
//    same number, which makes no second step.
// 3. A step of the trunk. Every `share_every` the trunk goes to another trainer, drawn at random,
//    and each trainer takes the mean of its own trunk and those that came.
// Source: Ryabinin and Gusev, arXiv:2002.04013, section 3.
#pragma once

#include "actors/experts/expert_record.hpp"
#include "actors/experts/expert_search.hpp"
#include "actors/experts/messages.hpp"
#include "actors/experts/observations.hpp"
#include "actors/protocol_actor.hpp"
#include "kernels/amsgrad.hpp"
#include "kernels/learn/mixture_network.hpp"

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
  kernels::amsgrad_config optimizer;
  /// The samples of step `step`.
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
  duration renew = std::chrono::seconds(20);
  duration record_lifetime = std::chrono::minutes(1);
  std::size_t sized = 0; ///< as in expert_server_config
  caf::actor dht;
};

/// The key of the trainers of a model.
std::string expert_trainers_key(std::string_view model);

class expert_trainer final : public protocol_actor {
public:
  expert_trainer(caf::actor_config& config, host& on, expert_trainer_config options);
  caf::behavior make_behavior() override;
  void on_exit() override;

private:
  enum timer : std::uint32_t { begin, late, renewal, sharing, pausing };
  struct row_search {
    std::size_t row = 0;
    expert_search by;
  };
  struct call {
    expert_place place;
    std::vector<learn::routed_row> rows;
    expert_holder to;
    bool again = false; // the request was repeated
  };
  struct answered_expert {
    expert_holder holder;
    std::uint64_t version = 0;
  };

  void start_step();
  void start_pass(std::vector<std::byte> samples, bool evaluates);
  void search_all_rows();
  void search_layer(const std::vector<std::size_t>& rows);
  void go_on_searching();
  void call_experts();
  /// Splits the rows into requests of a size that servers take.
  void place_calls(const expert_place& place, std::span<const learn::routed_row> rows,
                   const expert_holder& to);
  void place_call(const expert_place& place, std::vector<learn::routed_row> rows,
                  const expert_holder& to, std::uint64_t request, bool again);
  void receive(const expert_answer& m);
  void receive(const found& m);
  void receive(const trunk_share& m);
  void lose(std::uint64_t request, expert_refusal why, bool may_repeat);
  void layer_answered();
  void go_back();
  void call_back();
  void finish_step();
  void share(const found& m);
  void watch(const expert_holder& holder);
  void on_down(const caf::actor_addr& whom) override;
  expert_id in_layer(const expert_place& place) const;

  expert_trainer_config options_;
  std::shared_ptr<const std::vector<float>> trunk_;
  std::vector<float> optimizer_state_;
  std::uint64_t steps_ = 0;
  expert_cache cache_;
  std::map<caf::actor_addr, peer_id> watched_;

  // The pass that is under way.
  std::shared_ptr<const std::vector<float>> used_; // the trunk with which the pass began
  std::optional<learn::mixture_pass> pass_;
  bool evaluates_ = false, backward_ = false;
  std::vector<row_search> searches_;
  std::set<expert_id> reading_; // prefixes whose dictionaries are being read
  std::vector<std::vector<learn::expert_choice>> chosen_;
  std::vector<std::map<expert_place, answered_expert>> answered_; // by layer
  std::map<std::uint64_t, call> calls_;
  std::map<std::uint64_t, expert_id> look_ups_;
  unsigned retried_ = 0, paused_ = 0;
  expert_step seen_;
  double loss_ = 0;
  duration began_{}, look_up_began_{};

  std::vector<float> shared_sum_; // trunks of others since the last step
  std::size_t shared_ = 0;
  std::uint64_t share_token_ = 0, last_token_ = 0;
  rng draws_;
};

} // namespace shoal::actors
