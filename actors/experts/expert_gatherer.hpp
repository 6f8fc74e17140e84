// Puts together the whole model of a swarm of experts, for a checkpoint or a measurement. It asks
// the holder of each expert for a copy. A trainer spawns it with a copy of its trunk, and trains on
// meanwhile. So the experts are of different steps, as in any pass of the swarm.
//
// Steps:
// 1. Read the dictionaries of the longest prefixes (expert_record.hpp).
// 2. Ask each holder for its experts, `in_flight` at a time.
// 3. Experts whose holders are gone, refuse or stay silent are looked up again, `attempts` times.
//    Those that are still missing are as `before` has them, and so are those whose copies are far
//    larger than most.
#pragma once

#include "actors/experts/expert_batch.hpp"
#include "actors/experts/expert_record.hpp"
#include "actors/experts/messages.hpp"
#include "actors/experts/observations.hpp"
#include "actors/protocol_actor.hpp"

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace shoal::actors {

using expert_states = std::vector<std::shared_ptr<const expert_state>>;

struct expert_gatherer_config {
  std::string model;
  std::uint64_t epoch = 0;
  std::vector<expert_id> experts; ///< all of them, in the order of the result
  expert_states before;           ///< the same number
  std::size_t parameters = 0;     ///< how many an expert has
  expert_optimizer optimizer;
  /// Gets the experts in order. Called once.
  std::function<void(expert_states)> then;
  std::size_t in_flight = 32;
  unsigned attempts = 3;
  duration pause = std::chrono::seconds(2); ///< before experts are looked up again
  duration timeout = std::chrono::seconds(10);
  duration record_lifetime = std::chrono::minutes(1);
  /// Parameters of a copy may be so many times as large as those of most copies; 0: any size may.
  double most_growth = 32;
  caf::actor dht;
};

class expert_gatherer final : public protocol_actor {
public:
  expert_gatherer(caf::actor_config& config, host& on, expert_gatherer_config options);
  caf::behavior make_behavior() override;
  void on_exit() override;

private:
  enum timer : std::uint32_t { late, again };
  struct request {
    std::size_t number = 0; // the expert's
    caf::actor to;
  };

  void look_up();
  void receive(const found& m);
  void receive(const expert_copy& m);
  void ask_more();
  void give_up(std::uint64_t request);
  void on_down(const caf::actor_addr& whom) override;
  void drop_too_large();
  void end();

  expert_gatherer_config options_;
  expert_states got_;
  std::map<expert_id, std::size_t> numbers_;
  std::map<std::uint64_t, expert_id> look_ups_; // prefixes, by token
  std::deque<request> waiting_;
  std::map<std::uint64_t, request> asked_;
  std::uint64_t last_token_ = 0, bytes_ = 0;
  unsigned tried_ = 0;
  duration began_{};
};

} // namespace shoal::actors
