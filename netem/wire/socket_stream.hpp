// The bytes of one connection, plain or encrypted. One thread at a time may use a stream.
#pragma once

#include "kernels/base/descriptor.hpp"

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace shoal::netem::wire {

/// `ended`: the other side sends nothing more. `failed`: why() has the reason.
enum class io_state { done, wants_read, wants_write, ended, failed };

struct io_result {
  io_state state = io_state::done;
  std::size_t bytes = 0;
};

class socket_stream {
public:
  explicit socket_stream(descriptor socket) : socket_(std::move(socket)) {}
  virtual ~socket_stream() = default;
  socket_stream(const socket_stream&) = delete;

  int socket() const noexcept { return socket_.get(); }
  const std::string& why() const noexcept { return why_; }

  virtual io_state handshake() { return io_state::done; }
  /// Reads at least one byte if the state is `done`.
  virtual io_result read(std::span<const iovec> into);
  /// Takes some of the bytes, and perhaps keeps them until flush(). If the state is not `done`, the
  /// stream has taken bytes as well.
  virtual io_result write(std::span<const iovec> what);
  virtual io_state flush() { return io_state::done; }
  /// True if read() may have bytes that the socket has not.
  virtual bool has_read_ahead() const { return false; }
  /// Tells the other side that nothing more comes. Requires: flush() said `done`.
  virtual void end();
  /// The other side's certificate in PEM; empty without TLS, and before the handshake.
  virtual std::string certificate() const { return {}; }
  /// The bytes that the socket has taken so far.
  std::uint64_t sent() const noexcept { return sent_; }

protected:
  io_state failed(int code);
  std::string why_;

private:
  const descriptor socket_;
  std::uint64_t sent_ = 0;
};

/// The errors of sockets in an operator's words.
std::string socket_error_text(int code);

} // namespace shoal::netem::wire
