// Observations of an inference swarm.
#pragma once

#include "actors/ids.hpp"
#include "actors/inference/route.hpp"
#include "actors/inference/session_table.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::actors {

/// A client has chosen token number `position` of a session.
struct token_chosen {
  static constexpr std::string_view observed_as = "token_chosen";
  std::uint64_t request = 0;
  std::uint32_t position = 0;
  std::int64_t token = 0;
  std::string logged_fields() const;
};

/// A client has given layers to servers: the whole model at first, then the layers of a lost
/// server.
struct route_chosen {
  static constexpr std::string_view observed_as = "route_chosen";
  std::uint64_t request = 0;
  std::vector<route_hop> hops;
  std::string logged_fields() const;
};

/// A client has lost the server of some layers. `why` none: the server is gone, or silent.
struct span_lost {
  static constexpr std::string_view observed_as = "span_lost";
  std::uint64_t request = 0;
  peer_id server = 0;
  refusal why = refusal::none;
  const char* reason() const noexcept;
  std::string logged_fields() const;
};

/// No server holds the layers; the client waits until one comes.
struct layers_missing {
  static constexpr std::string_view observed_as = "layers_missing";
  std::uint64_t request = 0;
  layer_span layers;
  /// 'no server holds layers 2:5: waiting for one'.
  std::string text() const;
  std::string logged_fields() const;
};

/// Two servers differ, and a client waits for a third one that decides.
struct check_waits {
  static constexpr std::string_view observed_as = "check_waits";
  std::uint64_t request = 0;
  layer_span layers;
  /// 'two servers differ on layers 2:5: waiting for a third one'.
  std::string text() const;
  std::string logged_fields() const;
};

/// A client has had the outputs of its servers computed again (output_check.hpp).
struct outputs_checked {
  static constexpr std::string_view observed_as = "outputs_checked";
  std::uint64_t request = 0;
  std::uint64_t tokens = 0;
  std::uint64_t passes = 0;    ///< requests to other servers
  bool disputed = false;       ///< two servers differ, and no third one decides
  std::uint64_t unchecked = 0; ///< spans that no other server holds
  std::string logged_fields() const;
};

/// A client has found that a server computes wrongly, and gives it no work any more. The text goes
/// back to its first `kept` tokens.
struct wrong_server {
  static constexpr std::string_view observed_as = "wrong_server";
  std::uint64_t request = 0;
  peer_id server = 0;
  std::uint64_t kept = 0, retracted = 0;
  std::string logged_fields() const;
};

/// A request of a client is over.
struct request_done {
  static constexpr std::string_view observed_as = "request_done";
  std::uint64_t request = 0;
  std::uint64_t tokens = 0;
  std::uint64_t replayed = 0; ///< tokens times layers that were computed again after losses
  std::string logged_fields() const;
};

/// A draining server has no session any more.
struct server_drained {
  static constexpr std::string_view observed_as = "server_drained";
};

/// A server has taken layers: its first ones, or others in the place of `before`.
struct layers_taken {
  static constexpr std::string_view observed_as = "layers_taken";
  layer_span layers;
  layer_span before; ///< empty at first
  std::string logged_fields() const;
};

/// A server has computed a batch of steps.
struct batch_done {
  static constexpr std::string_view observed_as = "batch_done";
  std::uint64_t steps = 0, tokens = 0;
  std::uint64_t sessions = 0; ///< that the server has now
};

} // namespace shoal::actors
