// The options of the emulated network, and the callbacks through which it reports.
#pragma once

#include "kernels/base/units.hpp"
#include "netem/events.hpp"
#include "netem/tcp.hpp"

#include <caf/fwd.hpp>

#include <cstdint>
#include <functional>

namespace shoal::netem {

class carrier;

/// How a message is accounted for. The caller knows the message types, the fabric does not.
struct message_class {
  std::uint8_t traffic = 0; ///< index into traffic_bytes()
  const char* name = "?";
  /// How many bytes CAF's serializer would write, where the caller counts them more cheaply.
  std::uint64_t (*bytes)(const caf::type_erased_tuple&) = nullptr;
  bool own_stream = false; ///< up to `own_stream_bytes` it does not wait behind bulk, but goes with
                           ///< the small messages
};

struct fabric_options {
  std::uint64_t seed = 1;
  duration detection_time = std::chrono::seconds(5);
  std::uint64_t small_message_bytes = 4096;
  std::uint64_t own_stream_bytes = 64 * 1024;
  bool wire_overhead =
      true; ///< false: serialized bytes alone, to compare with models that know no headers
  std::function<message_class(const caf::type_erased_tuple&)> classify;
  /// Both may be empty. Reports come one at a time in the order of history, when the fabric's lock
  /// is free: a callback may call the fabric. A call that causes reports returns when they are
  /// given.
  std::function<void(const delivered_event&)> on_event;
  transfer_model model = transfer_model::max_min;
  tcp_options tcp;
  std::function<void(const transfer_record&)> on_transfer;
  double hole_punching = 0.7; ///< netem/reachability.hpp
  carrier* over = nullptr;    ///< the real network; null: there is none. Outlives the fabric
  bool shaped = true;         ///< false: with a carrier, nothing takes time here
};

} // namespace shoal::netem
