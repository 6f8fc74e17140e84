// The common part of both ends of a gRPC stream: the queue of frames to write, and reading within
// the receive window.
#pragma once

#include "netem/thread_sanitizer.hpp"
#include "netem/wire/pipe.hpp"

#include <grpcpp/security/auth_context.h>
#include <grpcpp/support/byte_buffer.h>

#include <atomic>
#include <deque>
#include <mutex>

namespace shoal::netem::wire {

/// Packs frames from the front of the queue into one gRPC message: at least one, and as many as fit
/// together.
/// Requires: `from` is not empty.
grpc::ByteBuffer to_grpc(std::deque<frame>& from, std::size_t& bytes);
/// Unpacks the frames of a gRPC message. Returns false if the message does not consist of frames.
bool from_grpc(const grpc::ByteBuffer& message, std::vector<payload>& into);

/// The other side's certificate in PEM; empty without TLS.
std::string certificate_of(const std::shared_ptr<const grpc::AuthContext>& context);

class grpc_pipe : public pipe, public receive_window {
public:
  grpc_pipe(std::string kind, const pipe_options& options)
      : kind_(std::move(kind)), options_(options) {}

  void send(frame what) final;
  void finish() final;
  void close() final;
  std::size_t queued_bytes() const final { return queued_; }
  receive_window& window() final { return *this; }
  bool malformed() const final { return malformed_; }
  bool held_back() const final { return held_back_; }
  const std::string& kind() const final { return kind_; }
  void add(std::size_t bytes) final { unhandled_ += bytes; }
  void remove(std::size_t bytes) final;

protected:
  /// Starts reading, and writes the frames that were queued before.
  void go(std::function<void(payload)> on_frame, std::function<void(const std::string&)> on_closed);
  void read_done(bool ok);
  void write_done(bool ok);
  /// Must run right before each call into gRPC, and at the end of each gRPC callback.
  void grpc_goes_on() { before_callback(this); }
  /// Calls on_closed, at most once.
  void ended(const std::string& why);

  virtual void start_read(grpc::ByteBuffer* into) = 0;
  virtual void start_write(const grpc::ByteBuffer* what) = 0;
  /// Ends the stream of written frames.
  virtual void start_finish() = 0;
  /// Makes pending reads and writes fail.
  virtual void cancel() = 0;
  /// Called when no read or write is pending and none will start. The call may happen inside
  /// cancel().
  virtual void idle() = 0;

private:
  void write_next(std::unique_lock<std::mutex>& lock);
  void idle_if_so(std::unique_lock<std::mutex>& lock);
  /// A pipe that is held back has no read pending, so no read will say that the stream has ended.
  void end_hold_back() {
    if (held_back_.exchange(false)) reading_ = false;
  }

  const std::string kind_;
  const pipe_options options_;
  std::function<void(payload)> on_frame_;
  std::function<void(const std::string&)> on_closed_;
  mutable std::mutex mutex_;
  std::deque<frame> queue_;
  std::atomic<std::size_t> queued_{0}, unhandled_{0};
  std::atomic<bool> held_back_{false}, malformed_{false};
  bool started_ = false, reading_ = false, writing_ = false, closing_ = false, finishing_ = false,
       finished_ = false, idle_told_ = false;
  grpc::ByteBuffer in_, out_;
};

} // namespace shoal::netem::wire
