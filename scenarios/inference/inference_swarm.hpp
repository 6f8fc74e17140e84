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

struct inference_swarm {
  const learn::served_model* model = nullptr; ///< required; outlives the run
  std::vector<actors::layer_span> servers;    ///< the layers of each
  std::size_t clients = 1;
  bool real_sockets = false; ///< loopback: `delay`, `rate` and `layer_time` do not count
  std::vector<learn::token_id> prompt;
  std::uint32_t tokens = 100; ///< that each client writes
  learn::sampling_options sampling{.temperature = 0};
  std::uint64_t seed = 1;
  duration delay = std::chrono::milliseconds(25); ///< between two hosts, one way
  double rate = 100e6; ///< rate of each line, both ways, in bits per second
  duration layer_time = std::chrono::milliseconds(1);
  actors::session_limits limits;
  bool spreads = false; ///< clients draw servers, which shares out the load
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
  /// Something that people should know, such as 'layers 0:2 on server-0'.
  std::function<void(std::size_t client, duration when, const std::string& what)> on_news;
};

struct inference_figures {
  std::vector<std::vector<learn::token_id>> texts; ///< text of each client, without the prompt
  std::vector<duration> finished;                  ///< when each client was done; 0: it was not
  duration began{}, ended{};
  std::uint64_t deaths = 0, spans_lost = 0, waits = 0, replayed = 0, tokens = 0;
  std::uint64_t bytes = 0, bypassed = 0, misbehaved = 0;
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
