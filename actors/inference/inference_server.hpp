// A server of an inference swarm: holds some layers of a model, and computes steps of sessions and
// passes without state for clients.
//
// Steps that wait are computed together, a step of each session, before passes. The server
// announces itself in the DHT, and renews its record every third of the record's lifetime. A
// draining server takes no new session.
// Source: Borzunov et al., arXiv:2209.01188, section 3.
#pragma once

#include "actors/inference/activations.hpp"
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
  std::uint64_t batch_tokens = 1024;                  ///< most tokens of several steps in a batch
  std::size_t most_waiting = 4096;                    ///< steps and passes
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
  /// A step or a pass that waits.
  struct job {
    session_table::key key;
    caf::actor reply_to;
    std::uint64_t token = 0;
    layer_span layers;
    std::size_t samples = 0, most = 0, from = 0, time = 0;
    kernels::codec codec = kernels::codec::none;
    std::vector<float> values, gradient;
    std::vector<std::int64_t> order{};
    bool is_pass = false;
    std::vector<std::shared_ptr<learn::kv_cache>> caches{};
    bool failed = false;
  };
  /// The jobs that a compute thread works on.
  struct batch {
    std::vector<job> jobs;
  };
  static void compute(batch& what, layer_span layers,
                      const std::vector<std::shared_ptr<const learn::served_block>>& blocks);

  void receive(const inference_step& m);
  void receive(const pass_request& m);
  void enqueue_job(job what, std::uint8_t codec, const payload& values, const payload& gradient);
  void start_batch();
  /// Why the step cannot be computed; none: its session is ready for it.
  refusal prepare(job& step);
  void computed();
  void refuse(const job& what, refusal why);
  void publish();
  void note_if_drained();
  void on_down(const caf::actor_addr& whom) override;
  layer_span held() const noexcept { return options_.layers; }

  inference_server_config options_;
  session_table sessions_;
  std::deque<job> steps_, passes_;
  std::shared_ptr<batch> running_;
  /// The clients that are watched, and the sessions that each has opened.
  std::map<caf::actor_addr, std::set<session_table::key>> clients_;
  bool draining_ = false, drained_ = false;
};

} // namespace shoal::actors
