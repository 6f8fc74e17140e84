// A client of an inference swarm: holds the ends of a model, finds servers for its layers, and
// writes tokens through them. When a server dies, refuses or is silent, the client gives its layers
// to other servers, and goes on with the same token (span_chain.hpp).
// Source: Borzunov et al., arXiv:2209.01188, section 3.2.
#pragma once

#include "actors/dht/messages.hpp"
#include "actors/inference/activations.hpp"
#include "actors/inference/messages.hpp"
#include "actors/inference/output_check.hpp"
#include "actors/inference/server_pool.hpp"
#include "actors/inference/session_table.hpp"
#include "actors/inference/span_chain.hpp"
#include "actors/protocol_actor.hpp"
#include "kernels/learn/beam_search.hpp"
#include "kernels/learn/sampling.hpp"
#include "kernels/learn/served_block.hpp"

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace shoal::actors {

struct inference_client_config {
  std::string model;
  std::uint64_t model_digest = 0;
  std::shared_ptr<const learn::served_ends> ends;
  learn::sampling_options sampling;
  std::uint64_t seed = 1;
  /// Requests draw their tokens as if they had this number. Empty: each has its own.
  std::optional<std::uint64_t> draws_as;
  /// Differs between the clients of one host, so that their sessions have different names.
  std::uint64_t instance = 0;
  std::optional<learn::token_id> stop; ///< this token ends the text, and is not part of it
  std::size_t beams = 1;               ///< more than 1: beam search, and `sampling` is not used
  bool spreads = false; ///< weighted_route() in place of fastest_route(), to share out the load
  kernels::codec codec = kernels::codec::none; ///< codec of activations, both ways
  std::size_t sized = 0; ///< values of a token that travel as a size alone (activations.hpp)
  duration step_timeout = std::chrono::seconds(10); ///< added to the time that a step computes
  duration ban = std::chrono::seconds(15); ///< the first one; each further is twice as long
  duration look_up_every = std::chrono::seconds(20);
  duration retry = std::chrono::seconds(1); ///< between look-ups while layers are missing
  /// Each server sends its output to the next one, too. If that step is late by this time, the
  /// client sends it itself. Not with beams.
  bool push = false;
  duration push_timeout = std::chrono::seconds(1);
  /// The share of tokens after which other servers compute the session's outputs again
  /// (output_check.hpp). With more than 0 they also do so before the answer. The text goes back to
  /// its last right token if a server was wrong. Not with beams or sizes.
  double check = 0;
  /// How long the checks of a text wait, in all, for a server that they lack. The first one is for
  /// a second opinion, the other one for a server that decides a dispute. All servers renew their
  /// records within the latter.
  duration check_patience = std::chrono::seconds(5), dispute_patience = std::chrono::seconds(30);
  double unknown_round_trip = 0.15; ///< seconds
  double step_overhead = 0.018;     ///< seconds for each hop, beside the network
  caf::actor dht;
  /// Called with each token as it is chosen; with beams, at the end. May be empty.
  std::function<void(std::uint64_t request, learn::token_id token)> on_token;
  /// Called when the text goes back to its first `kept` tokens. May be empty.
  std::function<void(std::uint64_t request, std::size_t kept)> on_retract;
  /// Called when other servers have computed all of the first `tokens` of the text, and the outputs
  /// are the same. May be empty.
  std::function<void(std::uint64_t request, std::size_t tokens)> on_checked;
};

class inference_client final : public protocol_actor {
public:
  /// Timers. `leave` may come from the owner of the host: the client closes its sessions and ends.
  enum timer : std::uint32_t { look_up, step_late, leave, push_late, check_late };

  inference_client(caf::actor_config& config, host& on, inference_client_config options);
  caf::behavior make_behavior() override;
  void on_exit() override;

private:
  struct running {
    generate_request what;
    span_chain chain;
    rng random;
    learn::beam_search search;
    std::vector<std::int64_t> tokens{};  ///< generated so far
    std::optional<layer_span> missing{}; ///< the layers that no server holds
    // With checks.
    std::vector<rng> draws{};              ///< `random` before each token of `tokens`
    std::optional<output_check> check{};   ///< under way
    std::uint64_t passes = 0;              ///< requests of the check
    std::size_t checked = 0;               ///< chain length that was checked last
    std::optional<duration> lacks_since{}; ///< a check had to wait for a server then
    duration patience{};                   ///< since then
    bool sought = false;                   ///< the check has looked up servers
    bool says_it_waits = false;            ///< observers know that the check lacks a third server
    bool disputed = false;                 ///< the last check found no two servers that agree
    bool drawn = false;                    ///< whether this token is checked has been decided
    bool ends = false;                     ///< the text is complete, but for its check
  };

  /// True if the message's sender holds that session of the chain.
  bool is_from_holder(std::uint64_t session);
  void begin();
  void pump();
  bool plan(layer_span layers);
  void dispatch(const span_chain::request& step);
  /// The server of the step has it already, as the number `token`.
  void expect(const span_chain::request& step, const server_pool::server& server,
              std::uint64_t token);
  /// The servers after that of the step which know all tokens before it.
  std::vector<push_hop> hops_after(const span_chain::request& step);
  void take(const inference_output& m, peer_id from);
  /// The client sends the next steps itself.
  void forget_pushes();
  void begin_flight(const span_chain::request& step, const server_pool::server& server,
                    std::uint64_t token);
  // inference_client_checks.cpp
  /// Whether the session is to be checked before its next token.
  bool draws_check();
  void begin_check();
  /// The check waits for servers that may come yet.
  bool seeks_servers() const;
  /// Goes on with the check. True if the check waits for an answer.
  bool pump_check();
  void end_check(const output_check::done& found);
  void ask_for_pass(const output_check::request& what);
  void receive(const pass_output& m);
  /// The request of the check under way got no usable answer.
  void lose_check(std::uint64_t token, bool bans);
  void token_from(const std::vector<float>& output);
  void beams_from(const std::vector<float>& logits);
  void accept(learn::token_id token);
  /// Feeds the next token of each beam.
  void feed(std::span<const learn::token_id> next);
  void finish();
  void close_sessions();
  /// Reports the loss, and closes the session. With `bans`, the server gets no work for a while.
  void lose(const span_chain::lost_span& span, refusal why, bool bans);
  void on_down(const caf::actor_addr& whom) override;
  void ask_servers();

  inference_client_config options_;
  server_pool servers_;
  std::deque<generate_request> queue_;
  std::optional<running> now_;
  rng names_, routes_;
  std::uint64_t last_token_ = 0, look_ups_ = 0;
  std::uint64_t flight_ = 0; // the step under way
  /// Steps that servers push to each other, by their sessions.
  struct pushed_step {
    std::uint64_t token = 0;
    std::size_t from = 0, time = 0;
  };
  std::map<std::uint64_t, pushed_step> pushed_;
  /// Outputs of pushed steps that came before those of the servers before them.
  std::map<std::uint64_t, std::pair<peer_id, inference_output>> early_;
  bool was_pushed_ = false; // the step under way
  duration sent_{};
  std::size_t rows_ = 0; // tokens of the step under way
  double computing_ = 0; // seconds that the step under way should be computed
  bool looked_ = false;
  rng checks_;
  std::uint64_t check_flight_ = 0; // the pass under way
};

} // namespace shoal::actors
