// A pipe over one TCP connection, with TLS or without.
//
// Each side first sends the protocol's magic bytes. The side that dials then sends a frame with the
// pipe's kind, and all later frames are the owners'. A side that has finished ends its half of the
// connection.
//
// A pipe's socket belongs to the thread of one io_loop. Other threads leave work there.
#pragma once

#include "netem/wire/frame_stream.hpp"
#include "netem/wire/io_loop.hpp"
#include "netem/wire/pipe.hpp"
#include "netem/wire/socket_stream.hpp"
#include "netem/wire/tls.hpp"

#include <netdb.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::netem::wire {

/// The first bytes on each side of a connection.
inline constexpr std::string_view protocol_magic = "SHOAL/1\n";
inline constexpr std::size_t longest_kind = 32;

/// An address with its port, as in 10.0.0.5:41234 or [::1]:41234.
std::string socket_text(const sockaddr* at, socklen_t length);

/// Bytes that several pipes share. Thread safety: all.
class byte_budget {
public:
  explicit byte_budget(std::size_t most) : most_(most) {}
  bool take(std::size_t bytes) noexcept;
  void give_back(std::size_t bytes) noexcept { used_ -= bytes; }

private:
  const std::size_t most_;
  std::atomic<std::size_t> used_{0};
};

class socket_pipe final : public pipe,
                          public receive_window,
                          public io_client,
                          public std::enable_shared_from_this<socket_pipe> {
public:
  /// A pipe that connects when it is started.
  static std::shared_ptr<socket_pipe> dial(const std::string& address, const std::string& kind,
                                           std::shared_ptr<const tls_credentials> credentials,
                                           const pipe_options& options);

  struct accepted {
    std::unique_ptr<socket_stream> stream;
    std::string peer; ///< the other side's address
    std::chrono::milliseconds timeout{};
    std::shared_ptr<byte_budget> incomplete; ///< for long frames that are not complete
    /// The kind is known. `garbage`: the other side does not speak the protocol. Comes once, on the
    /// loop's thread.
    enum class outcome { greeted, garbage, failed };
    std::function<void(outcome, const std::shared_ptr<socket_pipe>&)> decided;
    std::function<void()> gone; ///< comes once, when the connection is closed
  };
  /// A pipe on a connection that another process opened. It shakes hands at once, and the loop
  /// keeps it until `decided`. Then it is its owner's, and closes if nobody keeps it.
  static std::shared_ptr<socket_pipe> accept(accepted what, const pipe_options& options);

  ~socket_pipe() override;

  void start(std::function<void(payload)> on_frame,
             std::function<void(const std::string&)> on_closed) override;
  void send(frame what) override;
  void finish() override;
  void close() override;
  std::size_t queued_bytes() const override { return queued_; }
  receive_window& window() override { return *this; }
  bool malformed() const override { return malformed_; }
  bool held_back() const override { return held_back_ || no_room_; }
  std::string certificate() const override;
  std::string peer() const override;
  const std::string& kind() const override { return kind_; }
  void add(std::size_t bytes) override { unhandled_ += bytes; }
  void remove(std::size_t bytes) override;

  void ready() override;

private:
  enum class phase { idle, connecting, shaking, greeting, waiting, open, ended };
  /// Bytes that go out together. One of the first two keeps them, or they are zeros.
  struct segment {
    std::vector<char> own;
    payload shown;
    const void* bytes = nullptr;
    std::size_t size = 0;
    std::size_t frame_bytes = 0; ///< the size of the frame that they end
  };

  socket_pipe(std::string kind, const pipe_options& options)
      : kind_(std::move(kind)), options_(options), loop_(io_loop::next()) {}

  void turn();
  void append(frame what);
  void append_bytes(std::vector<char> own);
  void append_zeros(std::size_t count);

  void begin();
  void resolved(int code, addrinfo* found);
  void connect_to_next();
  void connected();
  void shake_hands();
  void shaken();
  void take_greeting();
  void write_some();
  void wrote(std::size_t bytes);
  void read_some();
  void drain();
  bool read_magic();
  void deliver();
  void resume();
  bool may_read() const noexcept {
    return phase_ == phase::greeting ||
           (phase_ == phase::open && (lingers_ || (!held_back_ && !no_room_)));
  }
  /// Takes memory for a long frame from the budget. Reading waits while there is none.
  void reserve();
  void watch();
  void after(std::chrono::milliseconds time, void (socket_pipe::*then)());
  void end_if_not_open();
  void end_if_stuck();
  void find_room();
  void decide(accepted::outcome what);
  /// Closes the connection, and calls on_closed.
  void end(std::string why);
  void tell_end();

  std::string kind_; // the dialler's, or empty until the greeting has come
  const pipe_options options_;
  io_loop& loop_;

  std::atomic<std::size_t> queued_{0}, unhandled_{0};
  std::atomic<bool> held_back_{false}, no_room_{false}, malformed_{false};

  mutable std::mutex mutex_; // guards the members below
  std::deque<frame> queue_;
  bool turn_posted_ = false, closing_ = false, finishing_ = false;
  std::string certificate_, peer_;

  // Only the loop's thread uses the members below.
  phase phase_ = phase::idle;
  std::string target_; // the address to dial; empty on the side that accepted
  std::shared_ptr<const tls_credentials> credentials_;
  std::unique_ptr<addrinfo, void (*)(addrinfo*)> found_{nullptr, freeaddrinfo};
  const addrinfo* tried_ = nullptr;
  descriptor connecting_;
  std::unique_ptr<socket_stream> stream_;
  accepted from_;
  frame_stream frames_;
  std::vector<payload> arrived_;
  std::array<char, 8> magic_{};
  std::size_t magic_come_ = 0, reserved_ = 0;
  std::deque<segment> out_;
  std::size_t out_sent_ = 0; // so much of the first segment
  bool blocked_ = false;     // the socket takes no more
  bool broken_ = false;      // bytes came that are no frames
  bool finished_ = false, lingers_ = false;
  io_state shake_wants_ = io_state::wants_read;
  std::uint64_t sent_before_ = 0; // when end_if_stuck() last looked
  std::function<void(payload)> on_frame_;
  std::function<void(const std::string&)> on_closed_;
  std::string connect_error_, ended_because_;
};

} // namespace shoal::netem::wire
