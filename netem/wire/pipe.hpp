// One ordered stream of frames between two processes, both ways. A link has two of them, each on a
// connection of its own, so that what is small never waits behind tensors. Made by a listener
// (listener.hpp) or by open_pipe(); over gRPC, which brings flow control, limits before allocation
// and TLS.
//
// A frame is some bytes of head and payloads behind it, none of which is copied on its way out.
// Several small frames travel in one gRPC message; a frame is never larger than `max_frame_bytes`.
#pragma once

#include "kernels/base/payload.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace grpc {
class ChannelCredentials;
}

namespace shoal::netem::wire {

/// Room for a piece of a message and its head.
inline constexpr std::size_t max_frame_bytes = (std::size_t{1} << 20) + 4096;
/// gRPC refuses longer messages before it makes room for them.
inline constexpr std::size_t max_grpc_bytes = max_frame_bytes + 4096;

struct frame {
  std::vector<char> head;
  std::vector<payload> behind;

  std::size_t size() const noexcept {
    auto out = head.size();
    for (const auto& part : behind) out += part.size();
    return out;
  }
};

/// How much of what came is not handled yet. Reading stops while it is too much, and so does the
/// sender, a flow-control window later. Thread safety: all.
class receive_window {
public:
  virtual ~receive_window() = default;
  virtual void add(std::size_t bytes) = 0;
  virtual void remove(std::size_t bytes) = 0;
};

/// Thread safety: all. Callbacks come one at a time, on threads of gRPC's; they may call the pipe.
class pipe {
public:
  virtual ~pipe() = default;

  /// Called once before anything else, by whom the pipe is given to. `on_frame` is given frames
  /// that start at a multiple of eight bytes; `on_closed` comes once, with what gRPC says of the
  /// reason, and is the last call.
  virtual void start(std::function<void(payload)> on_frame,
                     std::function<void(const std::string& why)> on_closed) = 0;
  /// Queues it. Nothing happens if the pipe is closed.
  virtual void send(frame what) = 0;
  /// Sends what is queued, and then closes. on_closed still comes.
  virtual void finish() = 0;
  /// Closes at once.
  virtual void close() = 0;

  virtual std::size_t queued_bytes() const = 0;
  /// The pipe must outlive its use.
  virtual receive_window& window() = 0;
  /// True once something came that is not made of frames, which closes the pipe.
  virtual bool malformed() const = 0;
  /// True while reading waits for the window.
  virtual bool held_back() const = 0;

  /// The other side's certificate in PEM; empty without TLS. And its address as gRPC has it.
  virtual std::string certificate() const = 0;
  virtual std::string peer() const = 0;
  /// The method that was called: what kind of pipe it is.
  virtual const std::string& kind() const = 0;
};

struct pipe_options {
  std::size_t window_bytes = std::size_t{8} << 20; ///< what may be unhandled
  std::size_t lookahead_bytes = std::size_t{4}
                                << 20; ///< HTTP/2's window: what may be on its way beyond that
};

/// Opens one to `address` (host:port). It connects while it is used; a failure to is told by
/// on_closed.
std::shared_ptr<pipe> open_pipe(const std::string& address, const std::string& kind,
                                const std::shared_ptr<grpc::ChannelCredentials>& credentials,
                                const pipe_options& options);

} // namespace shoal::netem::wire
