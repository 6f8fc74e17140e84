// A server of an inference swarm: holds some layers of a model, and computes steps of sessions and
// passes without state for clients.
//
// Steps that wait are computed together, a step of each session, before passes. The server
// announces itself in the DHT, and renews its record every third of the record's lifetime. A
// draining server takes no new session.
// Source: Borzunov et al., arXiv:2209.01188, section 3.
#pragma once

#include "actors/inference/activations.hpp"
#include "actors/inference/batch.hpp"
#include "actors/inference/messages.hpp"
#include "actors/inference/server_record.hpp"
#include "actors/inference/session_table.hpp"
#include "actors/protocol_actor.hpp"
#include "kernels/learn/served_block.hpp"

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace shoal::actors {

struct inference_server_config {
  std::string model;
  std::uint64_t model_digest = 0;
  layer_span layers;
  /// One block for each of the layers.
  std::vector<std::shared_ptr<const learn::served_block>> blocks;
  session_limits limits;
  duration layer_time = std::chrono::milliseconds(1); ///< time of one token through one layer
  duration batch_time{};                              ///< fixed time of a batch
  duration layer_batch_time{}; ///< a layer of a batch takes it, whatever its tokens
  duration context_time{};     ///< a token in a layer takes it for each earlier one
  /// The same layers with other weights, by the name of the adapter.
  std::map<std::string, std::vector<std::shared_ptr<const learn::served_block>>> adapters;
  std::size_t sized = 0; ///< values of a token that travel as a size alone (activations.hpp)
  std::uint64_t batch_tokens = 1024; ///< most tokens of several steps in a batch
  std::size_t most_waiting = 4096;   ///< steps and passes
  duration record_lifetime = std::chrono::minutes(1);
  caf::actor dht;
};

class inference_server final : public protocol_actor {
public:
  /// Timers. `drain` may come from the owner of the host.
  enum timer : std::uint32_t { renew, drain };

  inference_server(caf::actor_config& config, host& on, inference_server_config options);
  caf::behavior make_behavior() override;
  void on_exit() override;

private:
  using job = inference_job;

  void receive(const inference_step& m);
  void receive(const pass_request& m);
  /// The parts of a request that steps and passes share.
  struct parts {
    std::uint8_t codec = 0;
    const payload* values = nullptr;
    const payload* gradient = nullptr; ///< null or empty: none
    const payload* prompts = nullptr;
    const std::string* adapter = nullptr;
  };
  void enqueue_job(job what, const parts& from);
  void start_batch();
  /// Why the step cannot be computed; none: its session is ready for it.
  refusal prepare(job& step);
  void computed();
  void refuse(const job& what, refusal why);
  void publish();
  void note_if_drained();
  void on_down(const caf::actor_addr& whom) override;
  layer_span held() const noexcept { return options_.layers; }
  void hold(std::vector<std::shared_ptr<const learn::served_block>> blocks,
            const std::string& adapter);

  inference_server_config options_;
  session_table sessions_;
  std::deque<job> steps_, passes_;
  std::shared_ptr<inference_batch> running_;
  std::map<std::string, std::shared_ptr<const served_layers>> models_; // by adapter
  /// The clients that are watched, and the sessions that each has opened.
  std::map<caf::actor_addr, std::set<session_table::key>> clients_;
  bool draining_ = false, drained_ = false;
};

} // namespace shoal::actors
