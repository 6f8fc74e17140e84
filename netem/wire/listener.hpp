// Where other processes connect. In front of gRPC stands a gate: a connection whose first bytes are
// not those of the protocol, or that says nothing for `patience`, is closed and counted before
// anything is made for it, and only so many may wait at once, in all and from one address.
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

namespace grpc {
class ServerCredentials;
}

namespace shoal::netem::wire {

struct listener_options {
  address at; ///< port 0: any that is free
  std::shared_ptr<grpc::ServerCredentials> credentials;
  bool tls = false;                         ///< what the first bytes must be like
  std::chrono::milliseconds patience{5000}; ///< for the first bytes, and for the handshake
  std::size_t most_waiting = 256, most_waiting_from_one = 64; ///< that have said nothing yet
  std::size_t most_in_handshake = 256, most_in_handshake_from_one = 64;
  std::size_t memory_bytes = std::size_t{256} << 20; ///< what gRPC may use for all that comes
  pipe_options pipes;
  /// A stream was opened. The pipe closes unless it is kept.
  std::function<void(std::shared_ptr<pipe>)> on_pipe;
};

/// Connections that were refused.
struct refused_connections {
  std::uint64_t silent = 0;    ///< said nothing in time, or hung up
  std::uint64_t garbage = 0;   ///< did not speak the protocol
  std::uint64_t too_many = 0;  ///< waited, or came to shake hands, when too many did
  std::uint64_t handshake = 0; ///< opened no stream in time: a TLS handshake that failed
};

/// Whether a listener could be opened there now. Errors: as listener::open().
result<void> check_can_listen(const address& at);

class listener {
public:
  /// Errors: the address is in use, is not one of this machine, or needs rights that we lack.
  static result<std::unique_ptr<listener>> open(listener_options options);
  virtual ~listener() = default;

  /// With the port that was given.
  virtual const address& at() const noexcept = 0;
  virtual refused_connections refused() const noexcept = 0;
  /// Takes no more; closes what there is.
  virtual void close() = 0;
};

} // namespace shoal::netem::wire
