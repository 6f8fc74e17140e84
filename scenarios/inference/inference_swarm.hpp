// A swarm that serves a language model: hosts with servers that come and go, and clients that
// write. The swarm runs in virtual time, or over real sockets of this machine on the wall clock.
// Its actors are those of every world (actors/inference/).
#pragma once

#include "actors/inference/route.hpp"
#include "actors/inference/session_table.hpp"
#include "kernels/base/result.hpp"
#include "kernels/base/units.hpp"
#include "kernels/compress/codec.hpp"
#include "kernels/learn/model_file.hpp"
#include "kernels/learn/sampling.hpp"
#include "netem/transfer_model.hpp"
#include "scenarios/inference/prompt_tuner.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace shoal::scenarios {

/// A death at the `count`-th time that a server reaches `point` (actors/inference/probes.hpp). It
/// strikes the server that reached the point.
struct planned_death {
  std::string point;
  std::uint64_t count = 0;
};

/// A model of sizes alone, to predict times (kernels/learn/sized_block.hpp).
struct sized_model {
  std::uint32_t layers = 0;
  std::size_t width = 0; ///< values in a token's activations
  std::size_t context = 4096;
};

/// Passes of a batch through all layers, without state.
struct pass_work {
  std::size_t samples = 1, length = 128;
  std::uint32_t repeats = 1;
};

struct inference_swarm {
  const learn::served_model* model = nullptr; ///< outlives the run; null with `sized`
  std::optional<sized_model> sized;
  std::vector<actors::layer_span> servers; ///< the layers of each
  /// Servers choose as many layers themselves, and think of moving so often on average.
  std::optional<duration> rebalance_every;
  std::size_t clients = 1;
  bool real_sockets = false; ///< loopback: `delay`, `rate` and `layer_time` do not count
  std::vector<learn::token_id> prompt;
  std::uint32_t tokens = 100; ///< that each client writes
  learn::sampling_options sampling{.temperature = 0};
  std::uint64_t seed = 1;
  duration delay = std::chrono::milliseconds(25); ///< between two hosts, one way
  double rate = 100e6; ///< rate of each line, both ways, in bits per second
  duration layer_time = std::chrono::milliseconds(1);
  duration layer_batch_time{}, context_time{}; ///< as in actors::server_speed
  netem::transfer_model network = netem::transfer_model::max_min;
  std::optional<pass_work> forward; ///< the clients compute this, and write nothing
  /// The clients learn prompts, and write nothing.
  std::optional<prompt_tuning> tuning;
  std::function<void(std::size_t client, std::uint32_t step, double loss,
                     const std::vector<float>& prompts)>
      on_step; ///< each step of the tuning; may be empty
  actors::session_limits limits;
  bool spreads = false; ///< clients draw servers, which shares out the load
  bool push = false;    ///< servers send outputs to each other, too
  double check = 0;     ///< as inference_client_config::check
  /// Places in `servers` of those with the conduct `wrong_layers`.
  std::vector<std::size_t> wrong_servers;
  duration wrong_every{};    ///< at least this time between two wrong outputs of a server
  double wrong_strength = 1; ///< as conduct_options::strength
  kernels::codec activations = kernels::codec::none; ///< codec on the wire
  learn::weight_format weights = learn::weight_format::float32;
  /// Means of exponential distributions: how long a server lives, and how long it is away after
  /// that. A lifetime of 0 is for ever.
  duration lifetime{}, downtime = std::chrono::seconds(10);
  std::vector<planned_death> deaths;
  duration stop_time = std::chrono::hours(1);

  /// Called with each token. False ends the run. May be empty.
  std::function<bool()> proceed;
  /// Called with each event as it happens. Both may be empty.
  std::function<void(std::size_t client, learn::token_id)> on_token;
  /// The text goes back to its first `kept` tokens. May be empty.
  std::function<void(std::size_t client, std::size_t kept)> on_retract;
  /// Something that people should know, such as 'layers 0:2 on server-0'.
  std::function<void(std::size_t client, duration when, const std::string& what)> on_news;
};

struct inference_figures {
  std::vector<std::vector<learn::token_id>> texts; ///< text of each client, without the prompt
  std::vector<duration> finished;                  ///< when each client was done; 0: it was not
  std::vector<duration> first;                     ///< when it had its first token, or began
  duration began{}, ended{};
  std::uint64_t deaths = 0, spans_lost = 0, waits = 0, replayed = 0, tokens = 0;
  /// While all clients write: from the last one's first token to the first one's end.
  std::uint64_t steady_tokens = 0;
  duration steady_time{};
  std::uint64_t bytes = 0, bypassed = 0, misbehaved = 0;
  /// With `check`: checks, requests of them, servers that clients found wrong, and tokens that
  /// clients took back.
  std::uint64_t checks = 0, check_passes = 0, disputes = 0, found_wrong = 0, retracted = 0;
  /// With `rebalance_every`: moves of servers, and layers that lost their last living server by a
  /// move. `placement`: the weakest layer's rate beside a bound on that of any placement, as a mean
  /// over time. The bound is the sum of the servers' rates / layers.
  std::uint64_t moves = 0, cut = 0;
  double placement = 0;
  bool stopped = false;             ///< by `proceed`
  std::vector<std::string> missing; ///< layers that nobody holds at the end, as '3:5'
};

/// Errors: layers that no server ever holds, or that the model lacks; no client; a prompt that is
/// empty or too long for the model.
result<inference_figures> run_inference_swarm(const inference_swarm& what);

/// The tokens that the model writes on one machine, without a swarm.
/// Requires: the prompt fits, as run_inference_swarm() checks it.
std::vector<learn::token_id>
write_alone(const learn::served_model& model, const std::vector<learn::token_id>& prompt,
            std::uint32_t tokens, const learn::sampling_options& sampling, std::uint64_t seed,
            std::uint64_t request, learn::weight_format weights = {});

/// The number of the request with which client `client` asks, and with which it draws.
constexpr std::uint64_t request_of(std::size_t client) noexcept {
  return client + 1;
}

} // namespace shoal::scenarios
