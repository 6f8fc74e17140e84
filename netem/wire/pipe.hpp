// An ordered stream of frames between two processes, in both directions. A link has two pipes, each
// on its own connection, so small messages never wait behind tensors. A listener (listener.hpp) or
// open_pipe() makes a pipe (socket_pipe.hpp).
//
// A frame is a head of some bytes, followed by payloads. Without TLS, sending copies none of them.
// A frame has at most `max_frame_bytes` bytes.
#pragma once

#include "kernels/base/payload.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace shoal::netem::wire {

class tls_credentials;

/// The longest frame: a piece of a message and its head.
inline constexpr std::size_t max_frame_bytes = (std::size_t{1} << 20) + 4096;

struct frame {
  std::vector<char> head;
  std::vector<payload> behind;

  std::size_t size() const noexcept {
    auto out = head.size();
    for (const auto& part : behind) out += part.size();
    return out;
  }
};

/// Counts received bytes that are not handled yet. Reading stops while they are too many, and TCP's
/// flow control then stops the sender. Thread safety: all.
class receive_window {
public:
  virtual ~receive_window() = default;
  virtual void add(std::size_t bytes) = 0;
  virtual void remove(std::size_t bytes) = 0;
};

/// Thread safety: all. Callbacks come one at a time, on a thread that serves other pipes, too.
/// Callbacks may call the pipe.
class pipe {
public:
  virtual ~pipe() = default;

  /// The pipe's new owner calls it once, before any other function. `on_frame` gets frames that
  /// start at a multiple of eight bytes. `on_closed` is the last callback and comes once, with a
  /// reason in an operator's words (end_reasons.hpp).
  virtual void start(std::function<void(payload)> on_frame,
                     std::function<void(const std::string& why)> on_closed) = 0;
  /// Queues a frame. Does nothing if the pipe is closed.
  virtual void send(frame what) = 0;
  /// Sends the queued frames, and then closes. Frames that come later are dropped; on_closed still
  /// comes.
  virtual void finish() = 0;
  /// Closes at once, and drops the queue.
  virtual void close() = 0;

  virtual std::size_t queued_bytes() const = 0;
  /// The window is valid as long as the pipe.
  virtual receive_window& window() = 0;
  /// True after bytes came that are not frames. Such bytes close the pipe.
  virtual bool malformed() const = 0;
  /// True while reading waits for the window.
  virtual bool held_back() const = 0;

  /// The other side's certificate in PEM; empty without TLS.
  virtual std::string certificate() const = 0;
  /// The other side's address, as in 10.0.0.5:41234.
  virtual std::string peer() const = 0;
  /// The kind of the pipe, which the side that dialled has named.
  virtual const std::string& kind() const = 0;
};

struct pipe_options {
  std::size_t window_bytes = std::size_t{8} << 20; ///< the bytes that may be unhandled
};

/// Opens a pipe to `address` (host:port). `kind`: a word of small letters. Null credentials: no
/// TLS. The pipe connects when it is started; on_closed reports a failure.
std::shared_ptr<pipe> open_pipe(const std::string& address, const std::string& kind,
                                const std::shared_ptr<const tls_credentials>& credentials,
                                const pipe_options& options);

} // namespace shoal::netem::wire
