// A server of an inference swarm: holds some layers of a model, and computes steps of sessions and
// passes without state for clients.
//
// A client names the servers to which the output of a step goes on. The server sends it only to
// servers whose records it has read.
//
// Steps that wait are computed together, a step of each session, before passes. The server
// announces itself in the DHT, and renews its record every third of the record's lifetime. A
// draining server takes no new session.
//
// With a `placement` the server chooses its layers itself (placement.hpp). At first it takes those
// that are held weakest. Every so often it moves where the weakest layer gains enough by it. A move
// closes its sessions, whose clients replay them elsewhere. No move takes a layer's last server
// away (layer_move.hpp).
// Source: Borzunov et al., arXiv:2209.01188, section 3.
#pragma once

#include "actors/conduct/conduct.hpp"
#include "actors/inference/activations.hpp"
#include "actors/inference/batch.hpp"
#include "actors/inference/layer_move.hpp"
#include "actors/inference/messages.hpp"
#include "actors/inference/server_pool.hpp"
#include "actors/inference/server_record.hpp"
#include "actors/inference/session_table.hpp"
#include "actors/protocol_actor.hpp"
#include "actors/queue_shares.hpp"
#include "kernels/learn/served_block.hpp"

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace shoal::actors {

/// The blocks of some layers, one for each.
struct held_blocks {
  std::vector<std::shared_ptr<const learn::served_block>> blocks;
  /// The same layers with other weights, by the name of the adapter.
  std::map<std::string, std::vector<std::shared_ptr<const learn::served_block>>> adapters;
};

/// A server that chooses its layers itself.
struct placement_config {
  std::uint32_t layers = 0; ///< all layers of the model
  std::uint32_t count = 0;  ///< layers that the server holds
  /// Called on a compute thread.
  std::function<held_blocks(layer_span)> load;
  /// The first choice comes within this time at a random moment, so that servers that start
  /// together see each other. Half of the time is for the way into the DHT.
  duration join_within = std::chrono::seconds(2);
  duration every = std::chrono::minutes(2); ///< mean time between two thoughts of moving
  double quality = 0.75;                    ///< as in better_window()
  move_rules move;
};

struct inference_server_config {
  std::string model;
  std::uint64_t model_digest = 0;
  layer_span layers; ///< empty with `placement`, as the next one
  held_blocks held;
  std::optional<placement_config> placement;
  session_limits limits;
  duration layer_time = std::chrono::milliseconds(1); ///< time of one token through one layer
  duration batch_time{};                              ///< fixed time of a batch
  duration layer_batch_time{}; ///< a layer of a batch takes it, whatever its tokens
  duration context_time{};     ///< a token in a layer takes it for each earlier one
  std::size_t sized = 0;       ///< values of a token that travel as a size alone (activations.hpp)
  std::uint64_t batch_tokens = 1024; ///< most tokens of several steps in a batch
  std::size_t most_waiting = 4096;   ///< steps and passes, a quarter of them from one member
  std::size_t most_waiting_bytes = std::size_t{1} << 30;
  duration record_lifetime = std::chrono::minutes(1);
  std::shared_ptr<actors::conduct> conduct = honest_conduct();
  caf::actor dht;
};

class inference_server final : public protocol_actor {
public:
  /// Timers. `drain` may come from the owner of the host.
  enum timer : std::uint32_t { renew, drain, place, move_late };

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
  void forget_idle_clients();
  void computed();
  /// The output of a step goes on to the next server of its chain.
  void push(const job& done, const payload& output);
  bool is_server(const caf::actor& whom) const;
  void read_servers(const found& m);
  void refuse(const job& what, refusal why);
  void publish();
  void note_if_drained();
  void on_down(const caf::actor_addr& whom) override;
  layer_span held() const noexcept { return options_.layers; }
  const learn::served_block& any_block() const { return *options_.held.blocks.front(); }
  /// Serves the layers from now on, in the place of those before.
  void take(layer_span layers, held_blocks blocks);

  // inference_server_layers.cpp: the choice of the layers.
  caf::message_handler placement_behavior();
  void set_place_timer();
  /// The servers of the model with this one, as placement sees them.
  std::vector<placed_server> placed() const;
  void choose(const found& m);
  /// The blocks of the target are here.
  void loaded();
  void receive(const stay_request& m);
  void receive(const stay_answer& m);

  inference_server_config options_;
  session_table sessions_;
  std::deque<job> steps_, passes_;
  queue_shares shares_; // the places of both
  struct late_push {
    caf::actor server;
    inference_step step;
  };
  std::vector<late_push> late_pushes_; // wait for the answer of a look-up
  std::set<caf::actor_addr> servers_;  // the servers of the model, by their records
  std::optional<duration> servers_looked_;
  std::shared_ptr<inference_batch> running_;
  std::map<std::string, std::shared_ptr<const served_layers>> models_; // by adapter
  /// The clients that are watched, and the sessions that each has opened.
  std::map<caf::actor_addr, std::set<session_table::key>> clients_;
  bool draining_ = false, drained_ = false;
  server_pool others_;
  layer_move move_;
  rng choices_;
  struct target {
    layer_span layers;
    std::shared_ptr<held_blocks> blocks; ///< filled on a compute thread
  };
  duration thought_every_{};
  std::optional<target> target_; ///< the layers to take next
};

} // namespace shoal::actors
