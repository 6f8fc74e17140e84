// The listening socket of a host. A gate closes a connection whose first bytes are not the
// protocol's, or that stays silent for `timeout`. A closed connection is counted, and costs little
// memory. The gate also limits the waiting connections, in all and from one address.
#pragma once

#include "kernels/base/result.hpp"
#include "netem/wire/address.hpp"
#include "netem/wire/pipe.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace shoal::netem::wire {

struct listener_options {
  address at;                                         ///< port 0: any that is free
  std::shared_ptr<const tls_credentials> credentials; ///< null: no TLS
  std::chrono::milliseconds timeout{5000}; ///< for the first bytes, and for the handshake
  /// Connections that have sent nothing yet.
  std::size_t most_waiting = 256, most_waiting_from_one = 64;
  std::size_t most_in_handshake = 256, most_in_handshake_from_one = 64;
  /// Open streams. A host opens two, or more for bulk (striped_pipe.hpp). Several hosts may share
  /// an address.
  std::size_t most_streams = 8192, most_streams_from_one = 1024;
  /// the memory of long frames that are not complete
  std::size_t memory_bytes = std::size_t{256} << 20;
  pipe_options pipes;
  /// A stream was opened. The pipe closes unless the callee keeps it.
  std::function<void(std::shared_ptr<pipe>)> on_pipe;
};

/// Connections that were refused.
struct refused_connections {
  std::uint64_t silent = 0;    ///< sent nothing in time, or closed
  std::uint64_t garbage = 0;   ///< did not speak the protocol
  std::uint64_t too_many = 0;  ///< came while too many others waited, shook hands or had streams
  std::uint64_t handshake = 0; ///< opened no stream in time, as after a failed TLS handshake
};

/// Checks that a listener could be opened at `at` now. Errors: as listener::open().
result<void> check_can_listen(const address& at);

class listener {
public:
  /// Errors: the address is in use, does not belong to this machine, or needs more rights.
  static result<std::unique_ptr<listener>> open(listener_options options);
  virtual ~listener() = default;

  /// The address, with the actual port.
  virtual const address& at() const noexcept = 0;
  virtual refused_connections refused() const noexcept = 0;
  /// Stops to listen, and closes all connections.
  virtual void close() = 0;
};

} // namespace shoal::netem::wire
