// Runs passes of batches through the layers of a swarm's servers, forward and backward. Other
// actors of its host use it to fine-tune a model and to score texts. The answer is the same
// whichever server dies (pass_chain.hpp).
//
// A batch travels in pieces of at most `piece_tokens` tokens, all at once, so that servers and
// lines work side by side. A gradient of prompts is the sum over the pieces in their order.
#pragma once

#include "actors/inference/activations.hpp"
#include "actors/inference/messages.hpp"
#include "actors/inference/pass_chain.hpp"
#include "actors/inference/server_pool.hpp"
#include "actors/inference/session_table.hpp"
#include "actors/protocol_actor.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace shoal::actors {

struct pass_client_config {
  std::string model;
  std::uint64_t model_digest = 0;
  std::uint32_t layers = 0; ///< all layers of the model
  std::size_t width = 0;
  kernels::codec codec = kernels::codec::none; ///< codec of activations and gradients, both ways
  std::size_t sized = 0; ///< values of a token that travel as a size alone (activations.hpp)
  std::size_t piece_tokens = 1024;
  bool spreads = true; ///< weighted_route() in place of fastest_route(), to share out the load
  duration timeout = std::chrono::minutes(2); ///< a piece's, beside the time that it computes
  duration look_up_every = std::chrono::seconds(20);
  duration retry = std::chrono::seconds(1); ///< between look-ups while layers are missing
  caf::actor dht;
};

class pass_client final : public protocol_actor {
public:
  pass_client(caf::actor_config& config, host& on, pass_client_config options);
  caf::behavior make_behavior() override;
  void on_exit() override;

private:
  enum timer : std::uint32_t { look_up, late };
  struct piece {
    pass_chain chain;
    std::size_t samples = 0;
    std::uint64_t shown = 0; // repeated layers that request_done has counted
  };
  struct pass {
    layers_forward what;
    std::vector<piece> pieces;
    bool back = false, answered = true;
    std::optional<layer_span> missing; // the layers that no server holds
  };
  struct flight {
    std::uint64_t pass = 0;
    std::size_t piece = 0;
    peer_id server = 0;
    std::size_t rows = 0;
    bool back = false;
  };

  void receive(const layers_forward& m);
  void receive(const layers_backward& m);
  void receive(const pass_output& m);
  void fail(const caf::actor& to, std::uint64_t token, std::string why);
  void pump();
  void pump(std::uint64_t token, pass& of);
  bool plan(std::uint64_t token, pass& of, pass_chain& chain, layer_span layers);
  /// False: the server is gone, and the span is open again.
  bool dispatch(std::uint64_t token, pass& of, std::size_t piece,
                const pass_chain::request& request);
  void finish(std::uint64_t token, pass& of);
  /// The request goes to another server.
  void lose(std::uint64_t request, refusal why);
  void forget(peer_id server);
  void ask_servers();
  void on_down(const caf::actor_addr& whom) override;

  pass_client_config options_;
  server_pool servers_;
  std::map<std::uint64_t, pass> passes_;
  std::map<std::uint64_t, flight> flights_;
  rng routes_;
  std::uint64_t last_request_ = 0, look_ups_ = 0;
  bool looked_ = false, asks_ = false;
};

} // namespace shoal::actors
