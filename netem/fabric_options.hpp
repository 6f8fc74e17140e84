// The options of the emulated network, and the callbacks through which it reports.
#pragma once

#include "kernels/base/rng.hpp"
#include "kernels/base/units.hpp"
#include "netem/events.hpp"
#include "netem/tcp.hpp"

#include <caf/actor.hpp>
#include <caf/fwd.hpp>
#include <caf/message.hpp>

#include <cstdint>
#include <functional>
#include <vector>

namespace shoal::netem {

class carrier;

/// The accounting class of a message. The caller knows the message types; the fabric does not.
struct message_class {
  std::uint8_t traffic = 0; ///< the index for traffic_bytes()
  const char* name = "?";
  /// Counts the bytes that CAF's serializer would write, if the caller can do so more cheaply.
  std::uint64_t (*bytes)(const caf::type_erased_tuple&) = nullptr;
  /// A message of up to `own_stream_bytes` goes with the small messages, and not behind bulk.
  bool own_stream = false;
};

/// A message that a host sends instead of another one.
struct altered_message {
  caf::actor to;
  caf::message content;
};

struct fabric_options {
  run_seed seed = 1;
  duration detection_time = std::chrono::seconds(5);
  std::uint64_t small_message_bytes = 4096;
  std::uint64_t own_stream_bytes = 64 * 1024;
  /// False counts serialized bytes only, for comparison with models without headers.
  bool wire_overhead = true;
  std::function<message_class(const caf::type_erased_tuple&)> classify;
  /// The identity of the machine with this name, such as its owner's public key. Node ids are made
  /// of it (fabric::node_of). Empty: the name.
  std::function<std::string(const std::string& name)> identity;
  /// Hosts whose owner changes what they send (fabric::tamper). Replaces a message to another host
  /// by any number of messages, to any address. Called in the sender's context, without the lock.
  std::function<std::vector<altered_message>(host_index from, const caf::actor& to,
                                             caf::message content)>
      alter;
  /// The two callbacks may be empty. Reports come one at a time in the order of history, without
  /// the fabric's lock, so a callback may call the fabric. A call that causes reports returns after
  /// they were given.
  std::function<void(const delivered_event&)> on_event;
  transfer_model model = transfer_model::max_min;
  tcp_options tcp;
  std::function<void(const transfer_record&)> on_transfer;
  double hole_punching = 0.7; ///< see netem/nat_rules.hpp
  carrier* over = nullptr;    ///< the real network, or null; must outlive the fabric
  bool shaped = true;         ///< false: with a carrier, messages take no time in the fabric
};

} // namespace shoal::netem
